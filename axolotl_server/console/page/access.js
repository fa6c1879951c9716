// Who the page speaks as. A token is kept in memory alone and is gone with the page.

export class Access {
  constructor() {
    this.token = "";
  }

  headers() {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  // What the page's own data is fetched with: the header tells the server that no other page asks.
  dataHeaders() {
    return { ...this.headers(), "X-Axolotl-Console": "1" };
  }
}
