import { vi } from 'vitest'
import type { UpstreamRequest } from '../../../../src/gateway/providers/send-to-provider.ts'

/** A request that was sent through `fetch`. */
export interface Sent {
  address: unknown
  method: string | undefined
  headers: Record<string, string>
  body: BodyInit | null | undefined
  redirect: string | undefined
}

/** Stands in for the network: records what is sent, and answers. */
export function recordFetch(
  answer: (sent: Sent) => Response | Promise<Response> = () => new Response('{}'),
): Sent[] {
  const all: Sent[] = []
  vi.stubGlobal('fetch', async (address: unknown, init: RequestInit) => {
    const headers = Object.fromEntries(new Headers(init.headers))
    const sent: Sent = { address, method: init.method, headers, body: init.body, redirect: init.redirect }
    all.push(sent)
    return answer(sent)
  })
  return all
}

export const requestOf = (more: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  operation: 'chat_completions',
  upstreamModel: 'model-1',
  body: new TextEncoder().encode('{}'),
  callerHeaders: null,
  stream: false,
  signal: new AbortController().signal,
  onConnected: null,
  onSending: null,
  allow: [],
  now: 0,
  ...more,
})
