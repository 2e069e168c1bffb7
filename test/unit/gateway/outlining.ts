import { expect } from 'vitest'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { drained } from '../../../src/lib/slices.ts'

const encoder = new TextEncoder()

export const outline = (protocol: Protocol, body: string | Uint8Array) =>
  drained(protocol.outline(typeof body === 'string' ? encoder.encode(body) : body))

/** Why a body is refused. */
export function refusal(protocol: Protocol, body: string | Uint8Array): string {
  try {
    outline(protocol, body)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    expect([error.kind, error.status, error.code]).toEqual(['invalid_request', 400, 'invalid_body'])
    return error.message
  }
  return 'accepted'
}

export const USER = [{ role: 'user', content: 'hi' }]
export const chat = (members: object) => JSON.stringify({ model: 'm', messages: USER, ...members })
export const message = (members: object) =>
  JSON.stringify({ model: 'm', messages: USER, max_tokens: 5, ...members })
