// api: calls to the server, and the outbox: an answer stays in this browser until the server has it on disk.
//
// Every entry has its own key, so that two tabs do not overwrite each other. Keys are in the order of time; entries are
// sent one after the other. An entry may be sent twice: the server counts its uuid once.

export function uuid() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

export async function get(path) {
  const response = await fetch(path, {credentials: 'same-origin'});
  if (!response.ok) throw Object.assign(new Error((await response.text()).trim()), {status: response.status});
  return response.json();
}

const WAIT = [300, 600, 1200, 2500];   // milliseconds between attempts

export class Outbox {
  // changed(count, state): state is 'idle', 'sending', 'offline' or 'ended'. refused(reason, entry): the server did.
  constructor(person, changed, refused) {
    this.prefix = `pal-out:${person}:`;
    this.changed = changed;
    this.refused = refused;
    this.failures = 0;
    this.sending = false;
    this.count = 0;
    addEventListener('online', () => this.flush());
    this.flush();
  }

  keys() {
    return Object.keys(localStorage).filter((k) => k.startsWith(this.prefix)).sort();
  }

  entries() {
    return this.keys().map((k) => JSON.parse(localStorage.getItem(k)));
  }

  add(path, body) {
    const order = `${String(Date.now()).padStart(15, '0')}-${String(this.count++).padStart(6, '0')}`;
    localStorage.setItem(`${this.prefix}${order}-${uuid().slice(0, 8)}`, JSON.stringify({path, body}));
    this.flush();
  }

  async flush() {
    if (this.sending) return;
    this.sending = true;
    clearTimeout(this.timer);
    for (let keys = this.keys(); keys.length > 0; keys = this.keys()) {
      if (!this.failures) this.changed(keys.length, 'sending');
      const entry = JSON.parse(localStorage.getItem(keys[0]));
      const status = await this.send(entry);
      if (status === 'later' || status === 'ended') {
        this.sending = false;
        this.changed(keys.length, status === 'ended' ? 'ended' : 'offline');
        if (status === 'later')
          this.timer = setTimeout(() => this.flush(), WAIT[Math.min(this.failures++, WAIT.length - 1)]);
        return;
      }
      this.failures = 0;
      localStorage.removeItem(keys[0]);
    }
    this.sending = false;
    this.changed(0, 'idle');
  }

  async send(entry) {
    try {
      const response = await fetch(entry.path, {method: 'POST', credentials: 'same-origin',
          headers: {'Content-Type': 'application/json'},
        body: JSON.stringify(entry.body), signal: AbortSignal.timeout(15000)});
      if (response.ok) return 'done';
      if (response.status === 401) return 'ended';
      if (response.status >= 500 || response.status === 408 || response.status === 429) return 'later';
      this.refused((await response.text()).trim(), entry);
      return 'refused';
    } catch {
      return 'later';
    }
  }
}
