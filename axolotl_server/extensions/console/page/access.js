// The two tokens of the page: that of the console, from the link that the server prints, and that of its callers.

const KEY = "axolotl-console";

export class Access {
  constructor() {
    this.token = ""; // in memory only
    this.consoleToken = "";
    this.readLink();
  }

  // The link ends with #token=…, which a browser sends to nobody. The token is kept for a reload and for other tabs.
  // Returns whether the address contained a token.
  readLink() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    try {
      if (token) localStorage.setItem(KEY, token);
      this.consoleToken = localStorage.getItem(KEY) ?? "";
    } catch {
      this.consoleToken = token ?? this.consoleToken; // the browser stores nothing
    }
    if (token) history.replaceState(null, "", location.pathname);
    return Boolean(token);
  }

  headers() {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  // For requests of the page's own data, which no other site can send.
  dataHeaders() {
    return { ...this.headers(), "X-Axolotl-Console": this.consoleToken };
  }
}
