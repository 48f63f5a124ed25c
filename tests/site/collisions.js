// Words of drawings that reach out of the drawing, stand over other words, or are wider than the box they are centered
// in. A line of type is taken without the room above and below its letters.
() => {
  const found = []
  for (const svg of document.querySelectorAll('.ct-figure .ct-svg')) {
    const field = svg.getBoundingClientRect()
    const texts = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim() && t.checkVisibility())
    const words = texts.map((t) => {
      const {left, right, top, bottom} = t.getBoundingClientRect(), high = bottom - top
      return {said: t.textContent, left, right, top: top + 0.2 * high, bottom: bottom - 0.22 * high}
    })
    const slack = 1  // CSS pixels
    words.forEach((one, i) => {
      if (one.left < field.left - slack || one.right > field.right + slack
          || one.top < field.top - slack || one.bottom > field.bottom + slack) found.push(`outside: ${one.said}`)
      for (const other of words.slice(i + 1)) {
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left)
        const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
        if (wide > slack && high > slack) found.push(`over each other: ${one.said} | ${other.said}`)
      }
      let box = texts[i].previousElementSibling
      while (box?.tagName === 'text') box = box.previousElementSibling
      if (box?.tagName !== 'rect') return
      const {left, right, top, bottom} = box.getBoundingClientRect(), middle = (one.top + one.bottom) / 2
      const centered = Math.abs(one.left + one.right - left - right) < 4 && top < middle && middle < bottom
      if (centered && one.right - one.left > right - left + slack) found.push(`wider than its box: ${one.said}`)
    })
  }
  return found
}
