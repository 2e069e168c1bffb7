import { newId } from '../../../lib/ids.ts'
import { type Json, objectOf, textOf } from '../../protocols/json.ts'
import type { ModelEvent } from '../model-events.ts'
import { JsonExtent } from './json-extent.ts'

interface Call {
  /** Place of the call among the calls of the choice. */
  number: number
  /** Id that the upstream gave; empty as long as it gave none. */
  id: string
  name: string
  /** Signature of the reasoning before the call; empty for none. */
  signature: string
  /** Arguments that arrived before the call was emitted. */
  held: string
  emitted: boolean
  extent: JsonExtent
}

interface Fragment {
  index: number | null
  id: string
  name: string
  json: string
  signature: string
}

/**
 * Assembles the tool calls of one choice from the fragments of a stream. The vendor keys them by `index` and names a
 * call once, in its first fragment. Other servers of the protocol leave the index out, send index 0 for every call,
 * make no id, repeat the name in each fragment, or send it in pieces. A piece that equals all of the name before it is
 * taken for its repetition.
 */
export class ChatToolCalls {
  readonly #choice: number
  readonly #calls: Call[] = []
  /** Calls not emitted yet, with a name and without. */
  readonly #named = new Set<Call>()
  readonly #nameless = new Set<Call>()
  readonly #byIndex = new Map<number, Call>()
  readonly #byId = new Map<string, Call>()
  readonly #emittedIds = new Set<string>()

  constructor(choice: number) {
    this.#choice = choice
  }

  /** Whether the choice has called any tool. */
  get some(): boolean {
    return this.#calls.length > 0
  }

  /** Takes the fragments of one chunk. */
  fragments(list: Json[]): ModelEvent[] {
    return list.flatMap((entry, position) => {
      const fragment = fragmentOf(entry)
      const sibling = list.length > 1 ? position : this.#calls.length - 1
      const call = this.#callOf(fragment) ?? this.#unkeyed(fragment, sibling)
      return call ? this.#continue(call, fragment) : this.#begin(fragment)
    })
  }

  /** Takes the calls of a whole answer, where each entry is one. */
  whole(list: Json[]): ModelEvent[] {
    const begun = list.flatMap((entry) => this.#begin({ ...fragmentOf(entry), index: null }))
    return [...begun, ...this.flush()]
  }

  /** Emits the calls whose names could still have grown. */
  flush(): ModelEvent[] {
    return this.#emitAll([...this.#nameless, ...this.#named])
  }

  /** Emits calls in the order in which they began. */
  #emitAll(calls: Call[]): ModelEvent[] {
    return calls.sort((left, right) => left.number - right.number).flatMap((call) => this.#emit(call))
  }

  /** The call that a fragment with an index or an id continues; undefined when it begins another one. */
  #callOf(fragment: Fragment): Call | undefined {
    const known = fragment.index === null ? this.#byId.get(fragment.id) : this.#byIndex.get(fragment.index)
    return known && beginsAnother(known, fragment) ? undefined : known
  }

  #unkeyed({ index, id, name }: Fragment, position: number): Call | undefined {
    return index === null && id === '' && name === '' ? this.#calls[position] : undefined
  }

  #begin(fragment: Fragment): ModelEvent[] {
    // A new call completes the names of the calls before it.
    const before = this.#emitAll([...this.#named])
    const call: Call = {
      number: this.#calls.length,
      id: '',
      name: '',
      signature: fragment.signature,
      held: '',
      emitted: false,
      extent: new JsonExtent(),
    }
    this.#calls.push(call)
    this.#nameless.add(call)
    if (fragment.index !== null) this.#byIndex.set(fragment.index, call)
    return [...before, ...this.#continue(call, fragment)]
  }

  #continue(call: Call, { id, name, json }: Fragment): ModelEvent[] {
    if (call.id === '' && id !== '') {
      call.id = id
      this.#byId.set(id, call)
    }
    if (!call.emitted && name !== call.name) {
      call.name += name
      this.#nameless.delete(call)
      this.#named.add(call)
    }
    call.extent.push(json)
    if (call.emitted) return json === '' ? [] : [this.#arguments(call, json)]
    call.held += json
    return call.held !== '' && call.name !== '' ? this.#emit(call) : []
  }

  #emit(call: Call): ModelEvent[] {
    if (call.emitted) return []
    call.emitted = true
    this.#named.delete(call)
    this.#nameless.delete(call)
    const id = call.id === '' || this.#emittedIds.has(call.id) ? newId('call') : call.id
    this.#emittedIds.add(id)
    const event: ModelEvent = {
      type: 'tool_call',
      choice: this.#choice,
      call: call.number,
      id,
      name: call.name,
      ...(call.signature !== '' && { signature: call.signature }),
    }
    const { held } = call
    call.held = ''
    return held === '' ? [event] : [event, this.#arguments(call, held)]
  }

  #arguments(call: Call, json: string): ModelEvent {
    return { type: 'tool_arguments', choice: this.#choice, call: call.number, json }
  }
}

function fragmentOf(entry: Json): Fragment {
  const made = objectOf(entry.function)
  // Some servers send the arguments as an object instead of its text.
  const json = typeof made.arguments === 'object' && made.arguments !== null ? made.arguments : null
  return {
    index: typeof entry.index === 'number' ? entry.index : null,
    id: textOf(entry.id),
    name: textOf(made.name),
    // https://ai.google.dev/gemini-api/docs/thought-signatures
    signature: textOf(objectOf(objectOf(entry.extra_content).google).thought_signature),
    json: json ? JSON.stringify(json) : textOf(made.arguments),
  }
}

/**
 * Gemini and others send parallel calls whole, each under index 0: a named fragment with an id of its own, or one that
 * brings more than white space after complete arguments, is another call, even with the same id: some servers make the
 * id of the tool's name. A new id alone is no sign of another call: some servers make one for every fragment.
 */
function beginsAnother(known: Call, { id, name, json }: Fragment): boolean {
  if (name === '') return false
  const otherId = id !== '' && known.id !== '' && id !== known.id
  return otherId || (known.extent.complete && json.trim() !== '')
}
