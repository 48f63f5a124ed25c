// Contrast of every text in view with what lies under it (WCAG 2). `figures` looks at the words of
// drawings: under them lie the shapes drawn before them that contain the middle of the word.
(figures) => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})
  const known = new Map()
  const rgba = (css) => {
    if (!known.has(css)) {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1)
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
      known.set(css, [r, g, b, a / 255])
    }
    return known.get(css)
  }
  const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a))
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) }
  // Each element is asked once: what lies under it is its parent's, and its own colour on that.
  const papers = new Map([[null, [255, 255, 255]]]), opacities = new Map([[null, 1]])
  const paper = (e) => {
    if (!papers.has(e)) papers.set(e, over(rgba(getComputedStyle(e).backgroundColor), paper(e.parentElement)))
    return papers.get(e)
  }
  const opacity = (e) => {
    if (!opacities.has(e)) opacities.set(e, opacity(e.parentElement) * getComputedStyle(e).opacity)
    return opacities.get(e)
  }
  const under = (text) => {
    const svg = text.ownerSVGElement, box = text.getBoundingClientRect()
    const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2
    let ground = paper(svg.parentElement)
    for (const shape of svg.querySelectorAll('rect, circle, ellipse, polygon, path')) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break
      const style = getComputedStyle(shape)
      if (style.fill === 'none') continue
      const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse())
      if (!shape.isPointInFill(point)) continue
      const [r, g, b, a] = rgba(style.fill)
      ground = over([r, g, b, a * style.fillOpacity * style.opacity], ground)
    }
    return ground
  }
  const found = []
  const judge = (e, color, ground, alpha) => {
    const [r, g, b, a] = rgba(color)
    const style = getComputedStyle(e), px = parseFloat(style.fontSize)
    const large = px >= 24 || (px >= 18.66 && style.fontWeight >= 700)
    const value = ratio(over([r, g, b, a * alpha], ground), ground)
    if (value < (!figures && large ? 3 : 4.5)) found.push(`${value.toFixed(2)} ${e.tagName} ${e.getAttribute('class')} "${e.textContent.trim().slice(0, 40)}"`)
  }
  let count = 0
  if (figures) {
    for (const text of document.querySelectorAll('.ct-svg text')) {
      if (!text.checkVisibility()) continue
      count++; judge(text, getComputedStyle(text).fill, under(text), opacity(text))
    }
  } else {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set()
    while (walk.nextNode()) {
      const e = walk.currentNode.parentElement
      if (seen.has(e) || !walk.currentNode.data.trim() || e.closest('svg, script, style, .md-search, .headerlink, [hidden], .md-top')) continue
      seen.add(e)
      if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue
      count++; judge(e, getComputedStyle(e).color, paper(e), opacity(e))
    }
  }
  return {count, found: [...new Set(found)]}
}
