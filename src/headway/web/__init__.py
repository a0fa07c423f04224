"""The pages that the server serves: plain ES modules, and pure clients of the public API.

Nothing here is built or fetched from elsewhere, and the pages keep to `default-src 'self'`: no
inline script, no inline style. What comes from the server becomes nodes through `dom.js`, which
escapes by default; `text.js` holds every word in English and Chinese.
"""
