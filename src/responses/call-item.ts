import { JsonExtent } from '../gateway/translation/events/json-extent.ts'
import { customToolInput } from '../gateway/translation/requests/responses-tools.ts'
import type { CustomToolCallItem, FunctionCallItem, ItemStatus } from '../wire/responses.ts'
import { DeltaWriter, type EventWriter } from './event-writer.ts'
import { newItemId } from './ids.ts'

/** A tool as the caller knows it. */
export interface CalledTool {
  name: string
  /** Of a tool that was given within a `namespace` tool. */
  namespace: string | null
  kind: 'function' | 'custom'
}

interface CallItem {
  readonly item: FunctionCallItem | CustomToolCallItem
  argue(json: string): void
  /** @param whole all arguments, `{}` where there are none. */
  close(whole: string, status: ItemStatus): void
}

/** A tool call while its arguments are written, told as an item or not. */
export class OpenCall {
  readonly callId: string
  readonly upstreamName: string
  readonly #item: CallItem | null
  readonly #extent = new JsonExtent()
  #arguments = ''
  #closed = false
  #cut = false

  /** @param item null when it is not told. */
  constructor(callId: string, upstreamName: string, item: CallItem | null) {
    this.callId = callId
    this.upstreamName = upstreamName
    this.#item = item
  }

  get shown(): boolean {
    return this.#item !== null
  }

  /** Whether its arguments are a whole JSON value. */
  get complete(): boolean {
    return this.#extent.complete
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether it ended before its arguments did. */
  get cut(): boolean {
    return this.#cut
  }

  /** JSON: callers parse it, so that a call without arguments has an empty object. */
  get arguments(): string {
    return this.#arguments === '' ? '{}' : this.#arguments
  }

  /** Adds arguments. What follows a call that was closed as complete means nothing. */
  argue(json: string): void {
    if (json === '' || this.#closed) return
    this.#arguments += json
    this.#extent.push(json)
    this.#item?.argue(json)
  }

  close(status: ItemStatus): void {
    if (this.#closed) return
    if (this.#arguments === '') this.argue('{}')
    this.#closed = true
    this.#cut = status === 'incomplete'
    this.#item?.close(this.#arguments, status)
  }
}

/** Begins the item of a call. */
export function callItem(
  writer: EventWriter,
  outputIndex: number,
  callId: string,
  tool: CalledTool,
): CallItem {
  return tool.kind === 'custom'
    ? new CustomCallItem(writer, outputIndex, callId, tool)
    : new FunctionItem(writer, outputIndex, callId, tool)
}

const namespaceOf = (tool: CalledTool) => (tool.namespace === null ? {} : { namespace: tool.namespace })

class FunctionItem implements CallItem {
  readonly item: FunctionCallItem
  readonly #writer: EventWriter
  readonly #outputIndex: number
  readonly #place: { item_id: string; output_index: number }
  readonly #deltas: DeltaWriter

  constructor(writer: EventWriter, outputIndex: number, callId: string, tool: CalledTool) {
    this.#writer = writer
    this.#outputIndex = outputIndex
    this.item = {
      id: newItemId('function_call'),
      type: 'function_call',
      status: 'in_progress',
      call_id: callId,
      name: tool.name,
      arguments: '',
      ...namespaceOf(tool),
    }
    this.#place = { item_id: this.item.id, output_index: outputIndex }
    this.#deltas = new DeltaWriter(writer, 'response.function_call_arguments.delta', this.#place)
    writer.write('response.output_item.added', { output_index: outputIndex, item: this.item })
  }

  argue(json: string): void {
    this.item.arguments += json
    this.#deltas.write(json)
  }

  close(whole: string, status: ItemStatus): void {
    const { item } = this
    item.status = status
    // Clients of the 6th major version read the name here.
    const done = { ...this.#place, name: item.name, arguments: whole }
    this.#writer.write('response.function_call_arguments.done', done)
    this.#writer.write('response.output_item.done', { output_index: this.#outputIndex, item })
  }
}

/** A custom tool takes text; models reach it as a function with the single parameter `input`. */
class CustomCallItem implements CallItem {
  readonly item: CustomToolCallItem
  readonly #writer: EventWriter
  readonly #outputIndex: number

  constructor(writer: EventWriter, outputIndex: number, callId: string, tool: CalledTool) {
    this.#writer = writer
    this.#outputIndex = outputIndex
    this.item = {
      id: newItemId('custom_tool_call'),
      type: 'custom_tool_call',
      status: 'in_progress',
      call_id: callId,
      name: tool.name,
      input: '',
      ...namespaceOf(tool),
    }
    writer.write('response.output_item.added', { output_index: outputIndex, item: this.item })
  }

  /** The input is told when it is whole: before that it is inside of a JSON text. */
  argue(): void {}

  close(whole: string, status: ItemStatus): void {
    const { item } = this
    item.status = status
    item.input = customToolInput(whole)
    const place = { item_id: item.id, output_index: this.#outputIndex }
    if (item.input !== '') {
      new DeltaWriter(this.#writer, 'response.custom_tool_call_input.delta', place).write(item.input)
    }
    this.#writer.write('response.custom_tool_call_input.done', { ...place, input: item.input })
    this.#writer.write('response.output_item.done', { output_index: this.#outputIndex, item })
  }
}
