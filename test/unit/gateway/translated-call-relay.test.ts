import { describe, expect, it, vi } from 'vitest'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import { callerOf, checkEnded, moveTimersByHand, type RelayRun, run, settle } from './relay-harness.ts'
import { events } from './stream-reading.ts'
import { converterOf, translatedCall } from './translated-call-harness.ts'

moveTimersByHand()

/** An answer of a messages model. */
const answerOf = (text: string, reason: string) =>
  events(
    { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  )
const PAUSED = answerOf('one', 'pause_turn')
const ENDED = answerOf('two', 'end_turn')

/** A relay of a chat caller on a messages model, whose turns may pause. */
function translatedRun(): Promise<RelayRun> {
  const request = { web_search_options: {} }
  const call = translatedCall({ caller: 'chat_completions', upstream: 'messages', request })
  const converter = converterOf(call, 'chat_completions')
  return run({ protocol: messages, caller: chatCompletions, converter })
}

const saidBy = (stream: string) =>
  [...stream.matchAll(/"content":"([^"]+)"/g)].map(([, text]) => text).join('')
const failure = (message: string) =>
  `event: error\ndata: {"error":{"message":"${message}","type":"server_error","code":"stream_error"}}\n\ndata: [DONE]\n\n`

describe('a turn that was paused', () => {
  it('ends as cut off, and takes nothing of what the upstream sends after its end', async () => {
    const relay = await translatedRun()
    await relay.upstream.send(`${PAUSED + ENDED}data: {"half`)
    const caller = callerOf(relay).readAll()
    await settle()
    expect(saidBy(caller.text)).toBe('one')
    expect(caller.text.match(/"finish_reason":"[^"]+"/g)).toEqual(['"finish_reason":"length"'])
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(relay.end).toEqual({ kind: 'completed' })
    await vi.runAllTimersAsync()
    checkEnded(relay)
  })

  it('that was cut off by the upstream has failed', async () => {
    const relay = await translatedRun()
    await relay.upstream.send(PAUSED.slice(0, PAUSED.indexOf('event: message_delta')), 'close')
    const caller = callerOf(relay).readAll()
    await settle()
    expect(caller.text.endsWith(failure('The upstream ended its answer early.'))).toBe(true)
    checkEnded(relay)
  })
})

describe('a translated stream that a caller does not read', () => {
  it('makes the upstream wait', async () => {
    const relay = await translatedRun()
    const long = events({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: 'x'.repeat(50_000) },
    })
    await relay.upstream.send(ENDED.slice(0, ENDED.indexOf('event: content_block_delta')))
    for (let index = 0; index < 10; index++) await relay.upstream.send(long)
    const asked = relay.upstream.asked
    expect(asked).toBeLessThan(6)
    const caller = callerOf(relay).readAll()
    await settle()
    await relay.upstream.send(ENDED.slice(ENDED.indexOf('event: content_block_stop')))
    for (let round = 0; round < 20 && !caller.finished; round++) await settle()
    expect(saidBy(caller.text)).toHaveLength(500_000)
    expect(relay.end).toEqual({ kind: 'completed' })
    await vi.runAllTimersAsync()
    checkEnded(relay)
  })
})
