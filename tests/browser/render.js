// What the templates of the pages promise, a function for each promise: values are data, and what has
// not changed is not touched. They are run on a page of the server, and throw what is wrong.
async () => {
  const { html, svg, each, node, render, replaceContent } = await import("/static/render.js");
  const place = document.body.appendChild(document.createElement("div"));
  const shown = () => place.innerHTML.replaceAll(/<!--.*?-->/g, "");
  const same = (got, wanted, about = "") => {
    const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)];
    if (one !== other) throw new Error(`${about} ${one} is not ${other}`);
  };
  return {
    values_are_never_markup() {
      const bad = `<img src=x onerror="boom()">&amp;'"</p>`;
      render(html`<p title=${bad} class="a ${bad} b">${bad} and ${[bad]} ${html`<b>${bad}</b>`}</p>`, place);
      const p = place.firstElementChild;
      same([p.title, p.className, p.textContent], [bad, `a ${bad} b`, `${bad} and ${bad} ${bad}`]);
      same(place.querySelectorAll("*").length, 2, "elements");
      same(node`<i>${bad}</i>`.textContent, bad);
      replaceContent(place, bad);
      same([place.children.length, place.textContent], [0, bad]);
    },

    addresses_lead_to_the_web_and_nowhere_else() {
      const link = (address) => html`<a href=${address}>x</a><form action="${address}"></form><img src=${address}>`;
      for (const refused of ["javascript:alert(1)", " java\nscript:alert(1)", "JavaScript:x", "data:text/html,x",
                             "vbscript:x", "http://[", "blob:x"]) {
        render(link("#/well"), place); // one that stood there is taken away
        render(link(refused), place);
        same(place.querySelectorAll("[href], [action], [src]").length, 0, refused);
      }
      render(html`<a href="java${"script:alert(1)"}">x</a>`, place);
      same(place.querySelector("a").hasAttribute("href"), false, "in two pieces");
      for (const fine of ["#/requests/7", "/docs", "https://example.org/?a=1", "?q=javascript:x"]) {
        render(html`<a href=${fine}>x</a>`, place);
        same(place.querySelector("a").getAttribute("href"), fine);
      }
    },

    some_attributes_are_refused_and_the_place_recovers() {
      const refused = [
        (value) => html`<p style=${value}></p>`, (value) => html`<p onclick=${value}></p>`,
        (value) => html`<p onClick="${value}"></p>`, (value) => html`<iframe srcdoc=${value}></iframe>`,
      ];
      for (const template of refused) {
        let said = "";
        try { render(template("x"), place); } catch (error) { said = error.message; }
        same(said.startsWith("a value cannot become the attribute"), true, said);
        render(html`<p>${"well"}</p>`, place);
        same(shown(), "<p>well</p>");
      }
      const broken = (item) => { if (item === 2) throw new Error("no"); return html`<i>${item}</i>`; };
      render(each([1, 3], (item) => item, broken), place);
      try { render(each([3, 2, 1], (item) => item, broken), place); } catch { /* as it should */ }
      render(each([3, 1], (item) => item, broken), place);
      same(shown(), "<i>3</i><i>1</i>");
    },

    attributes_properties_and_listeners() {
      const heard = [];
      const given = [];
      const field = (value, off, name, listener) => html`<input value="x" .value=${value} disabled=${off} aria-label=${name}
        --size=${value} @click=${listener} ref=${(element) => given.push(element)}>`;
      render(field("one", false, "a", () => heard.push(1)), place);
      const input = place.querySelector("input");
      same([input.value, input.disabled, input.ariaLabel, input.style.getPropertyValue("--size")], ["one", false, "a", "one"]);
      input.click();
      render(field("two", true, null, () => heard.push(2)), place);
      same([input.value, input.getAttribute("disabled"), input.hasAttribute("aria-label")], ["two", "", false]);
      render(field("two", undefined, 0, () => heard.push(3)), place);
      same([input.disabled, input.getAttribute("aria-label")], [false, "0"]);
      input.click();
      render(field("two", null, 0, null), place);
      input.click();
      same(heard, [1, 3], "listeners are replaced, and may be none");
      same(given.length, 1, "ref is called once");
      same(place.querySelector("input") === input, true);
      input.value = "typed";
      render(field("two", null, 0, null), place);
      same(input.value, "typed", "what has not changed is not set again");
    },

    /** Each kind after each other, also nested and next to what stays. */
    a_child_becomes_whatever_it_is() {
      const made = document.createElement("u");
      const kinds = [
        ["text", () => "a < b", "a &lt; b"], ["number", () => 0, "0"], ["nothing", () => null, ""],
        ["false", () => false, ""], ["true", () => true, ""], ["undefined", () => undefined, ""],
        ["template", () => html`<b>${1}</b>`, "<b>1</b>"],
        ["other template", () => html`<i>${html`<b>${2}</b>`}</i>`, "<i><b>2</b></i>"],
        ["node", () => made, "<u></u>"], ["list", () => [1, null, html`<s></s>`, [2, 3]], "1<s></s>23"],
        ["empty list", () => [], ""], ["each", () => each([1, 2], (n) => n, (n) => html`<p>${n}</p>`), "<p>1</p><p>2</p>"],
      ];
      const frame = (child) => html`<div>before ${child} after</div>`;
      for (const [one, first] of kinds) {
        for (const [other, second, wanted] of kinds) {
          render(frame(first()), place);
          render(frame(second()), place);
          same(shown(), `<div>before ${wanted} after</div>`, `${one}, then ${other}:`);
          render(frame(html`<p>${first()}</p>`), place);
          render(frame(html`<p>${second()}</p>`), place);
          same(shown(), `<div>before <p>${wanted}</p> after</div>`, `${one}, then ${other}, nested:`);
        }
      }
    },

    /** Any order after any other: what was there is the same element, and has the focus still. */
    elements_and_the_focus_stay_with_their_keys() {
      let seed = 7; // the same numbers each time
      const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
      const some = () => {
        const keys = Array.from({ length: 9 }, (_, key) => key).filter(() => random(4) > 0);
        return keys.map((key) => [random(1000), key]).toSorted(([a], [b]) => a - b).map(([, key]) => key);
      };
      const list = (keys) => render(html`<ul>${each(keys, (key) => key, (key, at) => html`<li><input id="k${key}" data-at=${at}>${key % 2 ? "odd" : null}</li>`)}</ul>tail`, place);
      const there = () => [...place.querySelectorAll("input")];
      let kept = new Map();
      for (let round = 0; round < 200; round += 1) {
        const keys = some();
        const focused = there()[random(9)] ?? null;
        focused?.focus();
        list(keys);
        same(there().map(({ id, dataset }) => `${id} ${dataset.at}`), keys.map((key, at) => `k${key} ${at}`), `round ${round}`);
        for (const input of there()) {
          if (kept.has(input.id)) same(kept.get(input.id) === input, true, `${input.id} is another, round ${round}`);
        }
        if (focused?.isConnected) same(document.activeElement.id, focused.id, `the focus, round ${round}`);
        kept = new Map(there().map((input) => [input.id, input]));
      }
      // Keys that come twice are two, and an empty list leaves nothing.
      list([1, 1, 2]);
      same(there().map(({ id }) => id), ["k1", "k1", "k2"]);
      list([]);
      same(shown(), "<ul></ul>tail");
    },

    drawings_and_the_layout_of_the_source() {
      render(html`
        <svg viewBox="0 0 ${9} 9">${[1, 2].map((x) => svg`<g class=${`n${x}`}><path d="M${x} 0h1"></path></g>`)}</svg>
      `, place);
      const paths = [...place.querySelectorAll("path")];
      same(paths.map((path) => path.namespaceURI), Array(2).fill("http://www.w3.org/2000/svg"));
      same(place.querySelector("svg").viewBox.baseVal.width, 9);
      same(place.querySelector(".n2 path").getAttribute("d"), "M2 0h1");
      same(place.firstChild.nodeType === Node.TEXT_NODE || /^\s/.test(shown()), false, "how the source is laid out");
      const words = (name) => html`
        <b>one</b> <i>${name}</i> two
      `;
      render(words("x"), place);
      same(shown(), "<b>one</b> <i>x</i> two");
    },

    nothing_grows() {
      const all = () => document.createNodeIterator(place, NodeFilter.SHOW_ALL);
      const size = () => { let many = 0; for (const walker = all(); walker.nextNode(); ) many += 1; return many; };
      const draw = (round) => render(html`<section class=${`r${round % 3}`}>
        ${round % 2 ? html`<p>${round}</p>` : html`<b>${round}</b>`}
        ${[round, round % 5 ? html`<i>${round}</i>` : null]}
        <ul>${each([0, 1, 2, 3].map((n) => (n + round) % 6), (key) => key, (key) => html`<li>${key}${round % 7 ? [key] : key}</li>`)}</ul>
      </section>`, place);
      draw(0);
      const first = size();
      const section = place.querySelector("section");
      for (let round = 1; round <= 1050; round += 1) draw(round); // 1050 looks like 0: 2, 3, 5, 6 and 7 divide it
      same(size(), first);
      same(place.querySelector("section") === section, true);
    },
  };
}
