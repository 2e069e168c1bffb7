/**
 * Frames of the PostgreSQL wire protocol, version 3.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */

/** One message: its type byte as a character and the whole frame, type and length included. */
export interface Frame {
  readonly type: string
  readonly bytes: Buffer
}

/** Codes that stand in place of a protocol version in the first, untyped packet of a connection. */
export const SSL_REQUEST = 80_877_103
export const GSS_REQUEST = 80_877_104
export const CANCEL_REQUEST = 80_877_102

/** Builds a frame from its type character and body. */
export function frame(type: string, body: Buffer | string = ''): Buffer {
  const payload = typeof body === 'string' ? Buffer.from(body) : body
  const bytes = Buffer.alloc(5 + payload.length)
  bytes.write(type, 0, 'latin1')
  bytes.writeInt32BE(4 + payload.length, 1)
  payload.copy(bytes, 5)
  return bytes
}

/** ReadyForQuery; the status is I (idle), T (in a transaction) or E (in a failed one). */
export function readyForQuery(status: 'I' | 'T' | 'E'): Buffer {
  return frame('Z', status)
}

/** AuthenticationCleartextPassword: any password is taken, the step exists because the driver expects one. */
export function passwordRequest(): Buffer {
  return frame('R', int32(3))
}

/** Everything a server says between an accepted password and the first query. */
export function sessionGreeting(parameters: Record<string, string>): Buffer {
  const statuses = Object.entries(parameters).map(([name, value]) => frame('S', `${name}\0${value}\0`))
  const keyData = frame('K', Buffer.concat([int32(1), int32(1)]))
  return Buffer.concat([frame('R', int32(0)), ...statuses, keyData, readyForQuery('I')])
}

/** ErrorResponse from severity, SQLSTATE, message and hint. */
export function errorResponse(error: {
  severity: string
  code: string
  message: string
  hint: string
}): Buffer {
  const { severity, code, message, hint } = error
  return frame('E', `S${severity}\0V${severity}\0C${code}\0M${message}\0H${hint}\0\0`)
}

/**
 * The transaction status after a run of server messages.
 *
 * @returns the status of the last ReadyForQuery, or nothing if there is none
 */
export function lastTransactionStatus(output: Buffer): string | undefined {
  let status: string | undefined
  for (let offset = 0; offset + 5 <= output.length; offset += 1 + output.readInt32BE(offset + 1)) {
    if (output[offset] === 0x5a) status = String.fromCharCode(output[offset + 5] ?? 0)
  }
  return status
}

/** Cuts a byte stream into the untyped first packets and the frames that follow them. */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0)

  /** Adds bytes as they arrive; a frame may span any number of them. */
  push(bytes: Buffer): void {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
  }

  /** Takes the first packet of a connection and returns its code, or nothing while it is incomplete. */
  takeStartup(): number | undefined {
    if (this.#pending.length < 8) return undefined
    const length = this.#pending.readInt32BE(0)
    if (length < 8) throw new Error('malformed startup packet')
    if (this.#pending.length < length) return undefined
    const code = this.#pending.readInt32BE(4)
    this.#pending = this.#pending.subarray(length)
    return code
  }

  /** Takes the next frame, or nothing while it is incomplete. */
  takeFrame(): Frame | undefined {
    if (this.#pending.length < 5) return undefined
    const length = 1 + this.#pending.readInt32BE(1)
    if (length < 5) throw new Error('malformed message length')
    if (this.#pending.length < length) return undefined
    const bytes = this.#pending.subarray(0, length)
    this.#pending = this.#pending.subarray(length)
    return { type: String.fromCharCode(bytes[0] ?? 0), bytes }
  }
}

/** The statement name of a Parse message; empty for the unnamed statement. */
export function parsedStatementName(parse: Frame): string {
  return parse.bytes.toString('utf8', 5, parse.bytes.indexOf(0, 5))
}

/**
 * Puts a prefix before the name of a prepared statement in Parse, Bind, Describe and Close, so that connections
 * that share one session cannot take each other's statements. Other frames and unnamed statements stay as they are.
 */
export function prefixStatementName(message: Frame, prefix: string): Buffer {
  const nameStart = statementNameOffset(message)
  if (nameStart === undefined || message.bytes[nameStart] === 0) return message.bytes
  const body = message.bytes.subarray(5)
  const split = nameStart - 5
  return frame(
    message.type,
    Buffer.concat([body.subarray(0, split), Buffer.from(prefix), body.subarray(split)]),
  )
}

function statementNameOffset({ type, bytes }: Frame): number | undefined {
  if (type === 'P') return 5
  if (type === 'B') return bytes.indexOf(0, 5) + 1
  const describesStatement = bytes[5] === 'S'.charCodeAt(0)
  return (type === 'D' || type === 'C') && describesStatement ? 6 : undefined
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
