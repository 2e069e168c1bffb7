/**
 * Bytes that a connection may be sent from one response to the next. The runtime queues what a client does not read, without
 * a limit and without reporting it (https://github.com/cloudflare/workerd/issues/988). A client that creates a response has
 * read the one before; until then, everything that was sent counts as queued.
 * @internal A bound that tests reach.
 */
export const MOST_UNREAD_BYTES = 32 * 1024 * 1024

/** Counts what the clients of an object may not have read. After hibernation nothing is queued any more. */
export class UnreadBytes {
  readonly #counts = new WeakMap<WebSocket, number>()

  /** @returns whether the message may still be sent. */
  add(socket: WebSocket, text: string): boolean {
    const count = (this.#counts.get(socket) ?? 0) + Buffer.byteLength(text)
    this.#counts.set(socket, count)
    return count <= MOST_UNREAD_BYTES
  }

  /** To be called when a client has created a response. A message that is refused shows nothing, and costs nothing. */
  clear(socket: WebSocket): void {
    this.#counts.delete(socket)
  }
}
