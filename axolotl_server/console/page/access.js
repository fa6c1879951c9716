// The token of the page, which is kept in memory only.

export class Access {
  constructor() {
    this.token = "";
  }

  headers() {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  // For requests of the page's own data: the extra header shows the server that no other site asks.
  dataHeaders() {
    return { ...this.headers(), "X-Axolotl-Console": "1" };
  }
}
