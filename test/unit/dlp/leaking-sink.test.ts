import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import type { ByteEdit } from '../../../src/lib/byte-edits.ts'
import { callerOf, checkEnded, moveTimersByHand, run } from '../gateway/relay-harness.ts'
import { chunks, events } from '../gateway/stream-reading.ts'
import { CODE, PROTOCOLS, policyOf } from './relayed-stream.ts'

/** The sink of the relay, which a test can break: then it sends one byte more than it was given. */
const sink = vi.hoisted(() => {
  // Files before this one have loaded the relay with the real sink, and those that follow must not get this one.
  vi.resetModules()
  return { leaks: false }
})
afterAll(() => void vi.resetModules())

vi.mock('../../../src/lib/byte-edits.ts', async (original) => {
  const whole = await original<typeof import('../../../src/lib/byte-edits.ts')>()
  const oneByteLess = (edit: ByteEdit): ByteEdit =>
    edit.end - edit.start > 1 ? { ...edit, start: edit.start + 1 } : edit
  return {
    ...whole,
    applyEditsInSlices: (source: Uint8Array, edits: ByteEdit[]) =>
      whole.applyEditsInSlices(source, sink.leaks ? edits.map(oneByteLess) : edits),
  }
})

moveTimersByHand()
afterEach(() => {
  sink.leaks = false
})

const STREAMS: Record<string, string> = {
  chat: chunks(
    { choices: [{ index: 0, delta: { content: `a ${CODE} b` } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    '[DONE]',
  ),
  messages: events(
    { type: 'message_start', message: {} },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `a ${CODE} b` } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_stop' },
  ),
}

describe.each(PROTOCOLS)('a %s relay', (name, protocol) => {
  const relay = async () => {
    const relay = await run({ protocol, inspection: policyOf('redact').responseInspection() })
    await relay.upstream.send(STREAMS[name] ?? '', 'close')
    const caller = callerOf(relay).readAll()
    await vi.waitFor(() => expect(relay.end).not.toBeNull())
    return { relay, caller }
  }

  it('accounts for every byte', async () => {
    const { relay: ended, caller } = await relay()
    checkEnded(ended)
    await vi.waitFor(() => expect(caller.finished).toBe(true))
    expect(caller.text).toContain('a [REDACTED:CODE]')
  })

  it('shows by its counts that its sink lets a byte slip past', async () => {
    sink.leaks = true
    const { relay: ended } = await relay()
    const { inspected, uninspected, released, withheld } = ended.inspection.counts
    expect(released + withheld).toBeGreaterThan(inspected + uninspected)
    expect(() => checkEnded(ended)).toThrow()
  })
})
