// The home page: the timeline, filtered by text.
const events = [...document.querySelectorAll(".timeline > li")];
$("filter").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const item of events) {
    const text = item.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
    count += !item.hidden;
  }
  for (const day of document.querySelectorAll(".day")) {
    day.hidden = !day.querySelector(".timeline > li:not([hidden])");
  }
  $("filtered").textContent = words.length ? `${count} of ${events.length} commits` : "";
});
