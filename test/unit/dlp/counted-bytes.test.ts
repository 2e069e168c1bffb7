import { describe, expect, it } from 'vitest'
import type { Action } from '../../../src/dlp/types.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { chunks, events } from '../gateway/stream-reading.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { CODE, PROTOCOLS, policyOf, relayed } from './relayed-stream.ts'

/** Streams of each protocol and action; `test:dlp` runs more. */
const STREAMS = 10 * Number(process.env.FUZZ_ROUNDS ?? 2)

/** A stream of texts that hold values, partly values, escapes and characters of every length, randomly cut. */
function streamOf(protocol: string, random: SeededRandom): string {
  const text = () =>
    Array.from({ length: 1 + random.below(5) }, () =>
      random.pick(['a ', CODE, 'KX-12', 'é"\\', '😀\n', `${CODE} `, '\u0007']),
    ).join('')
  const input = () => JSON.stringify({ a: text(), [text()]: [text(), 7] })
  const texts: Array<[kind: number, text: string]> = [
    [0, text()],
    [1, text()],
    [2, random.chance(0.8) ? input() : text()],
  ]
  const pieces = texts.map(([kind, whole]) => [kind, piecesOf(whole, random)] as const)
  return protocol === 'chat' ? chatStream(pieces, random) : messagesStream(pieces)
}

function piecesOf(text: string, random: SeededRandom): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const length = 1 + random.below(7)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

type Pieces = ReadonlyArray<readonly [kind: number, pieces: readonly string[]]>

const chatDelta = (kind: number, piece: string): object =>
  [
    { reasoning_content: piece },
    { content: piece },
    { tool_calls: [{ index: 0, function: { arguments: piece } }] },
  ][kind] ?? {}

function chatStream(texts: Pieces, random: SeededRandom): string {
  const frames: object[] = []
  const left = texts.map(([kind, pieces]): [number, string[]] => [kind, [...pieces]])
  while (left.some(([, pieces]) => pieces.length > 0)) {
    const [kind, pieces] = random.pick(left)
    const piece = pieces.shift()
    if (piece !== undefined) frames.push({ id: 'c', choices: [{ index: 0, delta: chatDelta(kind, piece) }] })
  }
  const error = { error: { message: `oh ${CODE}` } }
  const end = { choices: [{ index: 0, delta: { content: 'KX-' }, finish_reason: 'stop' }] }
  return `: hi\n\n${chunks(...frames, random.chance(0.2) ? error : end, '[DONE]')}`
}

function messagesStream(texts: Pieces): string {
  const deltas = [
    (thinking: string) => ({ type: 'thinking_delta', thinking }),
    (text: string) => ({ type: 'text_delta', text }),
    (partial_json: string) => ({ type: 'input_json_delta', partial_json }),
  ]
  return events(
    ...texts.flatMap(([kind, pieces], index) => [
      ...pieces.map((piece) => ({ type: 'content_block_delta', index, delta: deltas[kind]?.(piece) })),
      { type: 'content_block_delta', index, delta: { type: 'signature_delta', signature: 's' } },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_stop' },
  )
}

describe.each(PROTOCOLS)('the bytes of a %s stream', (name, protocol) => {
  it.each(['warn', 'mask', 'redact', 'tokenise', 'block'] as const)(
    'add up under %s, wherever it breaks off, and nothing of a value leaves',
    (action: Action) => {
      let blocked = 0
      for (let seed = 0; seed < STREAMS; seed++) {
        const random = new SeededRandom(seed)
        const stream = streamOf(name, random)
        const frames = stream.split('\n\n').length - 1
        for (const upTo of [frames, random.below(frames), random.below(frames)]) {
          const { output, failure, inspection } = relayed(
            protocol,
            policyOf(action).responseInspection(),
            stream,
            upTo,
          )
          if (failure) expect(failure).toBeInstanceOf(ApiError)
          if (failure) blocked++
          const { inspected, uninspected, released, withheld } = inspection.counts
          expect([inspected + uninspected, seed, upTo]).toEqual([released + withheld, seed, upTo])
          expect(Math.min(inspected, uninspected, released, withheld)).toBeGreaterThanOrEqual(0)
          if (action === 'warn') continue
          // Masked values show their last four digits.
          expect(output).not.toContain(CODE)
          expect(output).not.toContain('1234-5')
        }
      }
      expect(blocked > 0).toBe(action === 'block')
    },
  )
})
