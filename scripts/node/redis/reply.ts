/**
 * Values as the Redis protocol has them. Every string is a byte string: one character per byte (Latin-1), so that
 * lengths, order and Lua see bytes, as in Redis. `toBytes` and `toText` convert at the borders.
 */

/** A simple string such as `OK`; in Lua it is a table with the member `ok`. */
export class StatusReply {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Reply of a command. */
export type Reply = null | number | string | StatusReply | Reply[]

/** An error reply of Redis; the first word of the message is its code. */
export class RedisError extends Error {}

/** The status of most commands that have nothing to report. */
export const OK = new StatusReply('OK')

/** Text to byte string (UTF-8). */
export function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

/** Byte string to text (UTF-8); bytes that are no UTF-8 become U+FFFD. */
export function toText(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
