// Validation errors of the server, separated into the places that they are about.

const START = "Invalid arguments: ";

// Reads "Invalid arguments: lines[0].sku: too short; name: required, but missing" as [["lines[0].sku", "too short"], …];
// null if the text is something else. A part that names none of the known arguments belongs to the part before it.
export function problemsIn(text, known) {
  if (typeof text !== "string" || !text.startsWith(START)) return null;
  const found = [];
  for (const part of text.slice(START.length).split("; ")) {
    const end = part.indexOf(": ");
    const path = part.slice(0, end);
    const isStart = end > 0 && (isAbout(path, known) || part.slice(end + 2).startsWith("unknown argument"));
    if (isStart) found.push([path, part.slice(end + 2).replace(/^Value error, /, "")]);
    else if (found.length) found.at(-1)[1] += `; ${part}`;
    else found.push(["", part]);
  }
  return found;
}

function isAbout(path, known) {
  return path === "arguments" || known.some((name) => matchOf(path, name) !== null);
}

// The rest of a path after a name; null if it does not begin with it. Servers shorten long names.
export function matchOf(path, name) {
  const start = name.slice(0, 64);
  if (start === "" || !path.startsWith(start)) return null;
  const rest = path.slice(start.length);
  return rest === "" || rest.startsWith("[") ? rest : rest.startsWith(".") ? rest.slice(1) : null;
}
