// The search index and the worker that reads it weigh as much as several pages. Material for MkDocs
// asks for both when a page opens; this asks for them when the reader reaches for the search.
// Loaded before Material's script, which then runs unchanged.
(() => {
  const wanted = new Promise((resolve) => {
    // Pages opened from a search result mark what was looked for, which takes the index.
    if (/[?&][hq]=/.test(location.search)) resolve()
    const reach = (event) => {
      if (event.target instanceof Element && event.target.closest(".md-search, [for=__search], #__search")) resolve()
    }
    for (const type of ["focusin", "pointerover", "change"]) document.addEventListener(type, reach)
  })

  const { open, send } = XMLHttpRequest.prototype
  const late = new WeakSet()
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    if (String(url).includes("/search/search_index.json")) late.add(this)
    return open.call(this, method, url, ...rest)
  }
  XMLHttpRequest.prototype.send = function (...body) {
    if (!late.has(this)) return send.apply(this, body)
    wanted.then(() => send.apply(this, body))
  }

  const Now = window.Worker
  window.Worker = class extends EventTarget {
    constructor(...args) {
      super()
      this.worker = wanted.then(() => {
        const worker = new Now(...args)
        worker.addEventListener("message", ({ data }) => this.dispatchEvent(new MessageEvent("message", { data })))
        return worker
      })
    }
    postMessage(...message) { this.worker.then((worker) => worker.postMessage(...message)) }
    terminate() { this.worker.then((worker) => worker.terminate()) }
  }
})()
