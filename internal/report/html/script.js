"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);

  // Theme: what the reader chose here, else what the system prefers.
  const root = document.documentElement;
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (systemDark.matches ? "dark" : "light")) === "dark";
  const store = {
    get() { try { return localStorage.getItem("cnibench-theme"); } catch { return null; } },
    set(v) { try { localStorage.setItem("cnibench-theme", v); } catch { /* a page from a file may have none */ } },
  };
  const themeButton = one("theme");
  const sayTheme = () => { themeButton.setAttribute("aria-pressed", String(isDark())); };
  if (["light", "dark"].includes(store.get())) root.dataset.theme = store.get();
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store.set(root.dataset.theme);
    sayTheme();
  });
  systemDark.addEventListener("change", sayTheme);
  sayTheme();

  // The pack holds what is built on demand: deflated JSON in base64, unpacked once.
  const element = (name, props, ...children) => {
    const e = Object.assign(document.createElement(name), props);
    e.append(...children);
    return e;
  };
  let unpacked;
  const unpack = () => unpacked ??= (async () => {
    const bytes = Uint8Array.from(atob(one("pack").content.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  })();

  // A search in a flame graph leaves what does not match faint.
  const findIn = (field) => {
    const figure = field.closest("figure");
    const frames = all("svg g", figure);
    const found = figure.querySelector("[role=status]");
    field.addEventListener("input", () => {
      const want = field.value.trim().toLowerCase();
      let n = 0;
      for (const g of frames) {
        const hit = want === "" || (g.querySelector("title")?.textContent ?? "").toLowerCase().split(":")[0].includes(want);
        g.classList.toggle("dim", !hit);
        if (hit) n++;
      }
      found.textContent = want === "" ? "" : `${n} found`;
    });
  };
  all("input[data-find]").forEach(findIn);

  // Filters: an element is shown unless one of its keys (profile, path, workload, metric) is switched off.
  const keys = ["p", "l", "w", "m"];
  const off = Object.fromEntries(keys.map((k) => [k, new Set()]));
  const buttons = all("#filters button[data-k]");
  const status = one("status");

  // Rows of a drawing close up where one is taken out.
  const sizes = new Map();
  const closeUp = () => {
    for (const svg of all("svg.chart")) {
      const rows = all("[data-row]", svg);
      if (rows.length === 0) continue;
      if (!sizes.has(svg)) sizes.set(svg, [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height]);
      const [width, height] = sizes.get(svg);
      let up = 0;
      for (const row of rows) {
        if (row.classList.contains("off")) up += Number(row.dataset.row);
        else row.setAttribute("transform", `translate(0 ${-up})`);
      }
      svg.setAttribute("viewBox", `0 0 ${width} ${height - up}`);
      svg.setAttribute("height", String(height - up));
    }
  };
  const apply = () => {
    for (const e of all(keys.map((k) => `main [data-${k}]`).join())) {
      e.classList.toggle("off", keys.some((k) => e.dataset[k] !== undefined && off[k].has(e.dataset[k])));
    }
    for (const b of buttons) b.setAttribute("aria-pressed", String(!off[b.dataset.k].has(b.value)));
    // A heading whose every table or figure is switched off goes too.
    for (const part of all("main [data-part]")) {
      const inside = all(".subject", part);
      part.classList.toggle("off", inside.length > 0 && inside.every((e) => e.classList.contains("off")));
    }
    closeUp();
    const rows = all("main tr[data-p]");
    const shown = rows.filter((r) => !r.classList.contains("off")).length;
    status.textContent = `${shown} of ${rows.length} rows of tables are shown.`;
  };
  for (const b of buttons) {
    b.addEventListener("click", () => {
      const set = off[b.dataset.k];
      if (!set.delete(b.value)) set.add(b.value);
      apply();
    });
  }
  one("all").addEventListener("click", () => {
    for (const k of keys) off[k].clear();
    apply();
  });
  const filters = one("filters");
  filters.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !filters.open) return;
    filters.open = false;
    filters.querySelector("summary").focus();
  });
  document.addEventListener("click", (e) => { if (!filters.contains(e.target)) filters.open = false; });

  // What is packed is built when its place is opened.
  for (const place of all("[data-pack]")) {
    place.closest("details").addEventListener("toggle", async () => {
      if (place.dataset.pack === "") return;
      const part = (await unpack()).parts[Number(place.dataset.pack) - 1];
      place.dataset.pack = "";
      place.replaceChildren(...new DOMParser().parseFromString(part, "text/html").body.children);
      all("[data-script]", place).forEach((e) => { e.hidden = false; });
      apply();
    });
  }

  // The table of all numbers: a cell's value has all its digits, its text five.
  const rounded = (field) => field === "" ? "–" : String(Number(Number(field).toPrecision(5)));
  const fill = ({ heads, rows }) => {
    const table = one("cells");
    table.createTHead().append(element("tr", {}, ...heads.map((h) => {
      const head = element("th", { scope: "col" }, h.text);
      if (h.numbers) head.dataset.numbers = "";
      return head;
    })));
    table.append(element("tbody", {}, ...rows.map((r) => {
      const row = element("tr", {}, ...r.fields.map((field, i) => {
        if (!heads[i].numbers) return element("td", { className: "t" }, field);
        const cell = element("td", {}, rounded(field));
        if (field !== "") cell.dataset.v = field;
        return cell;
      }));
      keys.forEach((k, i) => { row.dataset[k] = r.keys[i]; });
      return row;
    })));
    sortable(table);
    one("later").remove();
    apply();
  };
  one("table")?.addEventListener("toggle", async () => {
    const data = await unpack();
    if (one("later")) fill(data);
  });

  // Sorting: by value where a cell has one, else by text; what has neither stays last in both directions.
  const sortable = (table) => {
    const heads = all("thead th", table);
    const valueOf = (row, i) => {
      const cell = row.cells[i];
      if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
      return heads[i].dataset.numbers === undefined ? cell.textContent.trim() : NaN;
    };
    const missing = (v) => v === "" || Number.isNaN(v);
    const compare = (a, b, sign) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    };
    heads.forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const h of heads) h.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [valueOf(row, i), row]);
        rows.sort((x, y) => compare(x[0], y[0], down ? -1 : 1));
        body.append(...rows.map((r) => r[1]));
      });
    });
  };

  // Copying: the CSV, and texts to type or to paste.
  const copied = async (text, select) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      select();
      return document.execCommand("copy");
    }
  };
  const quoted = (field) => /[",\n\r]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
  const csv = async () => {
    const { heads, rows } = await unpack();
    return [heads.map((h) => h.text), ...rows.map((r) => r.fields)].map((line) => line.map(quoted).join() + "\n").join("");
  };
  one("copy")?.addEventListener("click", async () => {
    const area = element("textarea", { value: await csv(), readOnly: true, ariaLabel: "All numbers as CSV" });
    const done = await copied(area.value, () => { one("raw").append(area); area.select(); });
    one("copied").textContent = done ? "Copied." : "Press Ctrl+C to copy.";
  });
  one("save")?.addEventListener("click", async () => {
    const href = URL.createObjectURL(new Blob([await csv()], { type: "text/csv" }));
    element("a", { href, download: "cnibench.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
  });
  for (const item of all("[data-copy]")) {
    const text = item.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const done = await copied(text, () => getSelection().selectAllChildren(item));
      button.textContent = done ? "Copied" : "Ctrl+C";
    });
    item.append(button);
  }

  // The section being read is marked in the navigation.
  const links = new Map(all(".bar nav a").map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) {
      if (!e.isIntersecting) continue;
      for (const a of links.values()) a.removeAttribute("aria-current");
      links.get(e.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of links.keys()) {
    const section = one(id);
    if (section) seen.observe(section);
  }

  for (const e of all("[data-script]")) e.hidden = false;
  apply();
})();
