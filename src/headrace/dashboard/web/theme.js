// The theme, before anything is painted: a script of its own, so that no page flashes white.
(() => {
  try {
    const kept = localStorage.getItem("headrace-theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch {
    // Storage may be forbidden; the system's theme holds then.
  }
})();
