// The view is in the address behind "#", so that it can be linked and the browser's buttons work: "#/jobs/j1f3c".
import { storeOf } from "./store";

export interface Route {
  view: string;
  id: string;
}

function read(): Route {
  const [view = "", id = ""] = location.hash.replace(/^#\//, "").split("/");
  return { view: view || "jobs", id: decodeURIComponent(id) };
}

export const route = storeOf(read());
window.addEventListener("hashchange", () => {
  const before = route.value;
  route.set(read());
  if (before.view !== route.value.view || before.id !== route.value.id) window.scrollTo(0, 0);
});

export const linkTo = (view: string, id?: string) => `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}`;
