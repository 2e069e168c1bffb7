import type { ResponseObject } from '../../wire/responses.ts'
import { renderedFrames, type StreamEvent } from '../model/rendered-frames.ts'
import type { Members } from '../model/types.ts'
import { openResponsesItem } from './rendered-item.ts'
import { renderedResponse } from './rendered-response.ts'
import { eventTypeOnWire } from './type-names.ts'

/** Events that end a stream. */
const LAST_EVENTS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
])

/** How events with more than a text are rendered. Those of other types keep their members. */
const RENDERERS: Readonly<Record<string, (event: Members) => Members>> = {
  'response.created': withResponse,
  'response.in_progress': withResponse,
  'response.failed': withResponse,
  // The specification ends an incomplete response with an event of its own.
  'response.completed': (event) => ({
    ...withResponse(event),
    type: (event.response as ResponseObject).status === 'incomplete' ? 'response.incomplete' : event.type,
  }),
  'response.output_item.added': withItem,
  'response.output_item.done': withItem,
  error: ({ error, ...event }) => ({
    ...event,
    error: { ...(error as object), param: event.param ?? null },
  }),
}

function withResponse(event: Members): Members {
  return { ...event, response: renderedResponse(event.response as ResponseObject) }
}

function withItem(event: Members): Members {
  return { ...event, item: openResponsesItem(event.item as object) }
}

/** An event as Open Responses describes it. Events of other types have the prefix of this service. */
export function openResponsesEvent({ type, payload }: StreamEvent): StreamEvent {
  const onWire = eventTypeOnWire(type)
  const render = RENDERERS[type]
  // Most events are deltas, which need not be parsed.
  if (!render && onWire === type) return { type, payload }
  const event = JSON.parse(payload) as Members
  const rendered = render ? render(event) : { ...event, type: onWire }
  return { type: String(rendered.type), payload: JSON.stringify(rendered) }
}

/**
 * The frames of a response's stream in the form of Open Responses. `[DONE]` follows the last event.
 * @param frames of this service, in chunks of any size. An error of theirs is passed on.
 */
export const openResponsesFrames = (frames: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> =>
  renderedFrames(frames, openResponsesEvent, (last) => (LAST_EVENTS.has(last) ? 'data: [DONE]\n\n' : ''))
