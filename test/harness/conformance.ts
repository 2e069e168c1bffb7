import { ItemChecks } from './conformance-items.ts'
import {
  checkMembers,
  checkResponseObject,
  isRecord,
  type Report,
  type Rule,
  type StreamEvent,
} from './conformance-rules.ts'

export interface ConformanceOptions {
  /** The number after which the stream was asked for; 0, the default, for a whole one. */
  after?: number
  /** For a stream that was made after the window to resume: without the deltas, and without their numbers. */
  condensed?: boolean
}

/**
 * Checks a response stream against the rules of the surface (interface: Responses stream; the official client's
 * accumulator). It knows nothing of the code under test.
 * @returns what breaks them, as `rule: what`, in the order of the stream; empty for a stream that holds.
 */
export function checkResponseStream(
  events: readonly StreamEvent[],
  options: ConformanceOptions = {},
): string[] {
  const { after = 0, condensed = false } = options
  const violations: string[] = []
  let place = 'end'
  const report: Report = (rule, detail) => violations.push(`${rule}: ${detail} (${place})`)
  const stream = new StreamChecks(report, after, condensed)
  events.forEach((event, index) => {
    place = `event ${index + 1}, ${event.event}`
    stream.take(event, events[index - 1]?.event)
  })
  place = 'end'
  stream.end(events.at(-1)?.event)
  return violations
}

/** The rules that violations break. */
export const rulesOf = (violations: readonly string[]): Rule[] => [
  ...new Set(violations.map((violation) => violation.slice(0, violation.indexOf(':')) as Rule)),
]

const LAST = ['response.completed', 'response.failed']
const FIRST = ['response.created', 'response.in_progress']

class StreamChecks {
  readonly #report: Report
  readonly #partial: boolean
  readonly #condensed: boolean
  readonly #items: ItemChecks
  #sequence: number
  #count = 0
  #responseId: unknown
  #ended = false

  constructor(report: Report, after: number, condensed: boolean) {
    this.#report = report
    this.#sequence = after
    this.#partial = after > 0
    this.#condensed = condensed
    this.#items = new ItemChecks(report, { partial: this.#partial, condensed })
  }

  take(event: StreamEvent, previous: string | undefined): void {
    this.#count++
    this.#frame(event)
    if (this.#ended) this.#report('terminal', 'an event after the last one')
    this.#order(event.event, previous)
    if (!checkMembers(event, this.#report) || this.#ended) return
    const { data } = event
    if (isRecord(data.response)) this.#response(event.event, data.response)
    if (event.event === 'error') this.#error(data.error)
    ITEM_EVENTS[String(data.type)]?.(this.#items, data)
    if (LAST.includes(event.event)) this.#last(data.response as Record<string, unknown>)
  }

  end(last: string | undefined): void {
    if (!this.#ended) this.#report('terminal', `ends with ${last ?? 'nothing'}`)
  }

  #frame({ id, event, data }: StreamEvent): void {
    if (event !== data.type) this.#report('frame', `event: ${event}, type ${data.type}`)
    if (id !== undefined && id !== String(data.sequence_number)) {
      this.#report('frame', `id: ${id}, number ${data.sequence_number}`)
    }
    const expected = this.#sequence + 1
    const isNext = this.#condensed
      ? Number(data.sequence_number) >= expected
      : data.sequence_number === expected
    if (!isNext) {
      this.#report('numbering', `number ${data.sequence_number}, expected ${expected}`)
    }
    this.#sequence = typeof data.sequence_number === 'number' ? data.sequence_number : expected
  }

  /** `response.created`, then `response.in_progress`, once and first; `error` and `response.failed` together. */
  #order(event: string, previous: string | undefined): void {
    const place = FIRST.indexOf(event)
    // A tail may begin with the second of them.
    const at = this.#partial && this.#sequence === 2 ? 1 : this.#count - 1
    const begun = !this.#partial && this.#count <= FIRST.length
    if (begun ? place !== at : place >= 0 && place !== at)
      this.#report('lifecycle', `${event} at ${this.#count}`)
    if (previous === 'error' && event !== 'response.failed') {
      this.#report('error-event', `${event} after the error`)
    }
    const seen = this.#count > 1 || !this.#partial
    if (event === 'response.failed' && seen && previous !== 'error') {
      this.#report('error-event', 'response.failed without an error before it')
    }
  }

  #error(error: unknown): void {
    const { message, code, type } = isRecord(error) ? error : {}
    const whole = typeof message === 'string' && typeof code === 'string' && type === 'server_error'
    if (!whole) this.#report('error-event', `error is ${JSON.stringify(error)}`)
  }

  #response(event: string, response: Record<string, unknown>): void {
    checkResponseObject(response, this.#report)
    this.#responseId ??= response.id
    if (response.id !== this.#responseId) this.#report('response-members', 'another response')
    if (!FIRST.includes(event)) return
    const fresh =
      response.status === 'in_progress' && Array.isArray(response.output) && response.output.length === 0
    if (!fresh) this.#report('lifecycle', 'begins with output, or as ended')
  }

  #last(response: Record<string, unknown>): void {
    this.#ended = true
    const output = Array.isArray(response.output) ? response.output : []
    this.#items.end(output)
    if (response.output_text !== textOf(output)) this.#report('snapshot', 'output_text is not the text')
    this.#checkEnd(response)
  }

  #checkEnd(response: Record<string, unknown>): void {
    const { status, error, incomplete_details: details, usage, completed_at: completed } = response
    const failed = status === 'failed'
    if (usage === null) this.#report('response-end', 'usage is null')
    if (status === 'in_progress') this.#report('response-end', 'still in progress')
    if (failed !== (error !== null)) this.#report('response-end', 'error belongs to failed responses')
    if ((status === 'incomplete') !== (details !== null)) {
      this.#report('response-end', 'incomplete_details belong to incomplete responses')
    }
    if ((status === 'completed') !== (completed !== null)) {
      this.#report('response-end', 'completed_at belongs to completed responses')
    }
  }
}

type Data = Record<string, unknown>
type Handler = (checks: ItemChecks, data: Data) => void

const texts = (name: string, list: 'content' | 'summary', type: string): Array<[string, Handler]> => [
  [`response.${name}.delta`, (checks, data) => checks.delta(data, list, type)],
  [`response.${name}.done`, (checks, data) => checks.textDone(data, list, type)],
]

const calls = (name: string, type: string): Array<[string, Handler]> => [
  [`response.${name}.delta`, (checks, data) => checks.argument(data, type)],
  [`response.${name}.done`, (checks, data) => checks.argumentsDone(data, type)],
]

/** Effect of each event on items. */
const ITEM_EVENTS: Record<string, Handler> = Object.fromEntries([
  ['response.output_item.added', (checks, data) => checks.added(data)],
  ['response.output_item.done', (checks, data) => checks.done(data)],
  ['response.content_part.added', (checks, data) => checks.partAdded(data, 'content')],
  ['response.content_part.done', (checks, data) => checks.partDone(data, 'content')],
  ['response.reasoning_summary_part.added', (checks, data) => checks.partAdded(data, 'summary')],
  ['response.reasoning_summary_part.done', (checks, data) => checks.partDone(data, 'summary')],
  ['response.output_text.annotation.added', (checks, data) => checks.annotation(data)],
  ...texts('output_text', 'content', 'output_text'),
  ...texts('refusal', 'content', 'refusal'),
  ...texts('reasoning_summary_text', 'summary', 'summary_text'),
  ...calls('function_call_arguments', 'function_call'),
  ...calls('custom_tool_call_input', 'custom_tool_call'),
  ...calls('mcp_call_arguments', 'mcp_call'),
  ...calls('service_call_arguments', 'service_call'),
] satisfies Array<[string, Handler]>)

function textOf(output: unknown[]): string {
  const parts = output.flatMap((item) =>
    isRecord(item) && item.type === 'message' && Array.isArray(item.content) ? item.content : [],
  )
  return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('')
}
