// The words of our scripts in the page's language: cudatut/site/locale, under `scripts`.
const ctWords = {{ words | tojson }};
