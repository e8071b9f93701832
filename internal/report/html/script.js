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

  // A search in a flame graph leaves what does not match faint.
  for (const field of all("input[data-find]")) {
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
  }

  // Filters: an element is shown unless one of its keys (profile, path, workload, metric) is switched off.
  const keys = ["p", "l", "w", "m"];
  const off = Object.fromEntries(keys.map((k) => [k, new Set()]));
  const subjects = all("main [data-p], main [data-l], main [data-w], main [data-m]");
  const buttons = all("#filters button[data-k]");
  const status = one("status");

  // Rows of a drawing close up where one is taken out.
  const drawings = all("svg.chart").map((svg) => ({
    svg, rows: all("[data-row]", svg), width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height,
  })).filter((d) => d.rows.length > 0);
  const closeUp = () => {
    for (const d of drawings) {
      let up = 0;
      for (const row of d.rows) {
        if (row.classList.contains("off")) up += Number(row.dataset.row);
        else row.setAttribute("transform", `translate(0 ${-up})`);
      }
      d.svg.setAttribute("viewBox", `0 0 ${d.width} ${d.height - up}`);
      d.svg.setAttribute("height", String(d.height - up));
    }
  };
  const apply = () => {
    for (const e of subjects) {
      e.classList.toggle("off", keys.some((k) => e.dataset[k] !== undefined && off[k].has(e.dataset[k])));
    }
    for (const b of buttons) b.setAttribute("aria-pressed", String(!off[b.dataset.k].has(b.value)));
    // A heading whose every table or figure is switched off goes too.
    for (const part of all("main [data-part]")) {
      const inside = all(".subject", part);
      part.classList.toggle("off", inside.length > 0 && inside.every((e) => e.classList.contains("off")));
    }
    closeUp();
    const rows = all("#raw tbody tr");
    const shown = rows.filter((r) => !r.classList.contains("off")).length;
    status.textContent = `${shown} of ${rows.length} rows of the table are shown.`;
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

  // Sorting: by value where a cell has one, else by text; what has neither stays last in both directions.
  const table = one("cells");
  if (table) {
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
  }

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
  const copy = one("copy");
  if (copy) {
    copy.addEventListener("click", async () => {
      const area = one("csv");
      const done = await copied(area.value, () => { area.closest("details").open = true; area.select(); });
      one("copied").textContent = done ? "Copied." : "Press Ctrl+C to copy.";
    });
  }
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
