const { token } = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const LABELS = {
  "match.html": "page",
  "a_to_b.txt": "map (text)",
  "confidence.txt": "confidence",
  "map.npz": "map (NumPy)",
  "a_colored.ply": "A in colours",
  "b_colored.ply": "B in colours",
  "painted.glb": "A with the texture of B",
};
let shown = null;

async function ask(path, method = "GET", body) {
  const response = await fetch(path, { method, body, headers: { "X-Acnn-Token": token } });
  const answer = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

function say(text, failed = false) {
  at("message").textContent = text;
  at("message").classList.toggle("failed", failed);
}

async function tried(work) {
  try {
    show(await work());
  } catch (error) {
    say(error.message, true);
  }
}

function show(status) {
  for (const side of ["a", "b"]) {
    at(`drop-${side}`).querySelector(".files").textContent = status.files[side].join(", ") || "no file yet";
  }
  const job = status.job;
  const running = job?.state === "running";
  at("match").disabled = running || !status.files.a.length || !status.files.b.length;
  at("sample").disabled = at("paint").disabled = running;
  at("cancel").hidden = !running;
  const left = job?.left == null ? "" : `, about ${Math.round(job.left)} s left`;
  if (running) say(`${job.stage} (${Math.round(job.seconds)} s${left})`);
  else if (job?.state === "failed") say(job.error, true);
  else if (job?.state === "done") say(`Done in ${Math.round(job.seconds)} s.`);
  const match = status.match;
  at("result").hidden = !match;
  if (match) {
    at("verdict").textContent = `Verdict: ${match.verdict}, mean confidence ${Math.round(100 * match.mean_confidence)} %.`;
    at("notices").replaceChildren(...match.notices.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  }
  const query = `?token=${encodeURIComponent(token)}`;
  at("downloads").replaceChildren(
    ...status.results.map((name) =>
      Object.assign(document.createElement("a"), {
        href: `/result/${name}${query}&download=1`,
        textContent: LABELS[name],
        download: name,
      }),
    ),
  );
  if (match && match.at !== shown) {
    shown = match.at;
    at("view").src = `/result/match.html${query}`;
  }
  if (running) setTimeout(() => tried(() => ask("/status")), 400);
}

async function send(side, files) {
  let status = await ask("/status");
  for (const file of files) {
    say(`reading ${file.name}`);
    status = await ask(`/files/${side}/${encodeURIComponent(file.name)}`, "PUT", file);
  }
  say("");
  return status;
}

for (const side of ["a", "b"]) {
  const drop = at(`drop-${side}`);
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over-it");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over-it"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over-it");
    tried(() => send(side, event.dataTransfer.files));
  });
  drop.querySelector("input").addEventListener("change", (event) => tried(() => send(side, event.target.files)));
}
at("match").addEventListener("click", () => tried(() => ask("/match", "POST")));
at("sample").addEventListener("click", () => tried(() => ask("/sample", "POST")));
at("paint").addEventListener("click", () => tried(() => ask("/paint", "POST")));
at("cancel").addEventListener("click", () => tried(() => ask("/cancel", "POST")));
tried(() => ask("/status"));
