import type { ModelEvent, StopReason } from '../../../src/gateway/translation/model-events.ts'
import {
  type EmitterOptions,
  type FinalEnd,
  ResponseEmitter,
} from '../../../src/responses/emitter/emitter.ts'
import { EventWriter } from '../../../src/responses/emitter/event-writer.ts'
import type { EmittedEvent } from '../../../src/responses/model/events.ts'
import { initialResponse } from '../../../src/responses/model/response-members.ts'
import type { CalledTool } from '../../../src/responses/model/tool-result.ts'
import { responseSettings } from '../../../src/wire/responses.ts'
import { checkResponseStream } from '../../harness/conformance.ts'
import type { StreamEvent } from '../../harness/conformance-rules.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'

export const COMPLETED: FinalEnd = {
  status: 'completed',
  usage: null,
  completedSeconds: 1_800_000_009,
}

/** Events of the first choice, in few words. */
export const say = {
  text: (text: string): ModelEvent => ({ type: 'text', choice: 0, text }),
  refusal: (text: string): ModelEvent => ({ type: 'refusal', choice: 0, text }),
  reasoning: (text: string): ModelEvent => ({ type: 'reasoning', choice: 0, text }),
  signature: (signature: string): ModelEvent => ({ type: 'reasoning_signature', choice: 0, signature }),
  redacted: (data: string): ModelEvent => ({ type: 'redacted_reasoning', choice: 0, data }),
  call: (call: number, name = 'look', id = `call_${call}`): ModelEvent => ({
    type: 'tool_call',
    choice: 0,
    call,
    id,
    name,
  }),
  args: (call: number, json: string): ModelEvent => ({ type: 'tool_arguments', choice: 0, call, json }),
  citation: (citation: Record<string, unknown>, length: number): ModelEvent => ({
    type: 'citation',
    choice: 0,
    citation,
    length,
  }),
  stop: (reason: StopReason, explanation: string | null = null): ModelEvent => ({
    type: 'stop',
    choice: 0,
    reason,
    stopSequence: null,
    explanation,
  }),
}

/** A tool by its name: of the caller, or of ours where it begins so. */
const toolNamed = (name: string): CalledTool => {
  if (name.startsWith('mcp')) return { itemType: 'mcp_call', members: { name, server_label: 'wiki' } }
  const itemType = name.startsWith('custom') ? 'custom_tool_call' : 'function_call'
  return { itemType, members: { name } }
}

/** An emitter whose events are kept. */
export class Emitting {
  readonly emitted: EmittedEvent[] = []
  readonly emitter: ResponseEmitter

  constructor(options: Partial<EmitterOptions> = {}) {
    const settings = responseSettings.parse({ model: 'm' })
    this.emitter = new ResponseEmitter({
      response: initialResponse(settings, [], {
        responseId: 'resp_1',
        createdAt: 1_800_000_000_000,
        conversationId: 'conv_1',
        compatibility: 'headgate',
      }),
      writer: this.writerAfter(0),
      nameOf: toolNamed,
      purposeOf: () => 'client',
      seal: () => null,
      approvalIdOf: ({ name }, json) => `mcpr_${name}_${json}`,
      ...options,
    })
  }

  /** A writer whose events are collected. @param lastSequence number of the event before the first. */
  writerAfter(lastSequence: number): EventWriter {
    return new EventWriter(lastSequence, (event) => this.emitted.push(event))
  }

  feed(...events: ModelEvent[]): this {
    for (const event of events) this.emitter.model(event)
    return this
  }

  /** The stream as it is sent. */
  get text(): string {
    return this.emitted
      .map(({ sequence, type, payload }) => `id: ${sequence}\nevent: ${type}\ndata: ${payload}\n\n`)
      .join('')
  }

  get stream(): StreamEvent[] {
    return readResponseStream(this.text)
  }

  get types(): string[] {
    return this.emitted.map(({ type }) => type.replace('response.', ''))
  }

  of(type: string): Array<Record<string, unknown>> {
    return this.stream.filter(({ event }) => event === `response.${type}`).map(({ data }) => data)
  }

  get violations(): string[] {
    return checkResponseStream(this.stream)
  }
}

/** A whole response of one turn. */
export function emitOne(
  events: ModelEvent[],
  end = COMPLETED,
  options: Partial<EmitterOptions> = {},
): Emitting {
  const emitting = new Emitting(options)
  emitting.emitter.begin()
  emitting.feed(...events)
  emitting.emitter.endTurn()
  emitting.emitter.end(end)
  emitting.emitter.terminate()
  return emitting
}
