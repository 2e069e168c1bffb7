import { expect } from 'vitest'
import { Inspection, passAllEngine, type TextEngine } from '../../../src/dlp/inspection.ts'
import type { FrameVerdict, Protocol, StreamReader } from '../../../src/gateway/protocols/protocol.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { parseFrame, SseSplitter } from '../../../src/lib/sse.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface ReadingOptions {
  modelId?: string | null
  usageRequested?: boolean
  engine?: TextEngine
}

export interface Reading {
  /** The caller's frames, without those of a failure or an end. */
  text: string
  verdicts: FrameVerdict[]
  reader: StreamReader
  inspection: Inspection
}

/** Reads a stream as the relay does, and checks on the way that no byte escapes the count. */
export function readStream(protocol: Protocol, stream: string, options: ReadingOptions = {}): Reading {
  const inspection = new Inspection(options.engine ?? passAllEngine)
  const reader = protocol.streamReader({
    inspection,
    modelId: options.modelId ?? null,
    usageRequested: options.usageRequested ?? false,
  })
  const verdicts: FrameVerdict[] = []
  let text = ''
  let read = 0
  for (const bytes of new SseSplitter().push(encoder.encode(stream))) {
    const frame = parseFrame(bytes)
    const verdict = drained(reader.read(frame))
    verdicts.push(verdict)
    read += frame.bytes.length
    if (verdict.kind === 'forward') {
      const edited = applyEdits(frame.bytes, verdict.edits)
      inspection.sink(edited.released, edited.withheld)
      text += decoder.decode(joinBytes(edited.pieces))
    } else {
      const forwarded = verdict.kind === 'failure' && verdict.forward
      inspection.sink(forwarded ? frame.bytes.length : 0, forwarded ? 0 : frame.bytes.length)
    }
    const { inspected, uninspected, released, withheld } = inspection.counts
    expect(inspected + uninspected).toBe(read)
    expect(released + withheld).toBe(read)
  }
  return { text, verdicts, reader, inspection }
}

/** Frames of chat completions. */
export const chunks = (...payloads: unknown[]): string =>
  payloads
    .map((payload) => `data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}\n\n`)
    .join('')

/** Events of messages, each under the name of its type. */
export const events = (...payloads: Array<{ type: string } & Record<string, unknown>>): string =>
  payloads.map((payload) => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`).join('')

/** Notes every text it is shown, and masks those that match. */
export function notingEngine(mask?: RegExp): TextEngine & { seen: string[] } {
  const seen: string[] = []
  return {
    policyVersion: 'test',
    seen,
    inspect(field, contents) {
      const text = decoder.decode(contents)
      seen.push(`${field.path.join('.')}=${text}${field.partial ? '…' : ''}`)
      return mask?.test(text) ? encoder.encode('***') : null
    },
    findings: () => [],
  }
}
