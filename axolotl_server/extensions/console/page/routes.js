// Addresses of features: #/tools/NAME, #/prompts/NAME and #/resources/URI.

const WORDS = { tool: "tools", prompt: "prompts", resource: "resources" };

// The address of a feature with a key such as "tool greet".
export function addressOf(key) {
  const end = key.indexOf(" ");
  return `#/${WORDS[key.slice(0, end)]}/${encodeURIComponent(key.slice(end + 1))}`;
}

// The key in the address of the page; null if it names no feature.
export function keyInAddress() {
  const [, word, name] = /^#\/([a-z]+)\/(.+)$/.exec(location.hash) ?? [];
  const kind = Object.keys(WORDS).find((one) => WORDS[one] === word);
  try {
    return kind === undefined ? null : `${kind} ${decodeURIComponent(name)}`;
  } catch {
    return null;
  }
}
