"use strict";
// Copy buttons, and the record that an address names.
(() => {
  const copied = async (button, text) => {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch (error) {  // a page opened as a file may not have a clipboard
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  window.tfdetCopy = copied;
  for (const button of document.querySelectorAll("button[data-copy]"))
    button.addEventListener("click", () => copied(button, button.dataset.copy));
  const open = () => {
    const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named && named.tagName === "DETAILS") named.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
