import { decodeString, scanJson } from '../../lib/json-scan.ts'
import type { ItemStatus, ReasoningItem } from '../../wire/responses.ts'
import type { OpenItem } from '../emitter/open-item.ts'
import { type GivenForm, needString, partType, quoted, withStatus } from './given-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType, ModelForm, ModelItems } from './item-type.ts'
import type { ReasoningSecret } from './reasoning-secret.ts'

/** What a model thought: readable as its summary, and sealed with the proofs of its origin. */
export const reasoning: ItemType = {
  prefix: 'rs',
  read: (item) => withStatus(item, givenReasoning(item)),
  direction: () => 'response',
  toModel: openedBlocks,
  precedes: true,
  sealedMember: 'encrypted_content',
  events: {
    late: ['encrypted_content'],
    list: {
      member: 'summary',
      index: 'summary_index',
      added: 'response.reasoning_summary_part.added',
      done: 'response.reasoning_summary_part.done',
      // The official types have a status there for parts that were broken off, and none for others.
      tellsCut: true,
      parts: {
        summary_text: {
          member: 'text',
          delta: 'response.reasoning_summary_text.delta',
          done: 'response.reasoning_summary_text.done',
          empty: { text: '' },
        },
      },
    },
  },
}

const PARTS = 'summary_text'

/**
 * An uninterrupted run of thinking while it is written. What of it can be read is told as its summary, one part for
 * each block; all of it, with the proofs of its origin, is the secret of the item.
 */
export class OpenReasoning {
  readonly item: ReasoningItem
  readonly secret: ReasoningSecret = []
  readonly #open: OpenItem
  readonly #origin: string | null
  readonly #seal: (secret: ReasoningSecret) => string | null

  /** @param origin the family that thinks, null when it is not known. @param seal see EmitterOptions. */
  constructor(open: OpenItem, origin: string | null, seal: (secret: ReasoningSecret) => string | null) {
    this.item = open.item as ReasoningItem
    this.#open = open
    this.#origin = origin
    this.#seal = seal
  }

  think(text: string): void {
    if (this.#open.part === null) this.#open.openPart(PARTS)
    this.#open.growPart(text)
  }

  /** Ends a block of thinking, one whose text the family kept to itself if none was told. */
  sign(signature: string): void {
    this.#remember({ text: this.#text ?? '', signature })
    this.#open.closePart('completed')
  }

  /** Adds a block that only its family can open. */
  redact(data: string): void {
    this.#endUnsigned('completed')
    this.#remember({ text: '', redacted: data })
  }

  close(status: ItemStatus): void {
    this.#endUnsigned(status)
    const sealed = this.#seal(this.secret)
    this.#open.close(status, sealed === null ? {} : { encrypted_content: sealed })
  }

  /** Of the block that is being written; null between two. */
  get #text(): string | null {
    return (this.#open.part?.text as string | undefined) ?? null
  }

  #remember(block: ReasoningSecret[number]): void {
    this.secret.push(this.#origin === null ? block : { ...block, origin: this.#origin })
  }

  #endUnsigned(status: ItemStatus): void {
    if (this.#text !== null) this.#remember({ text: this.#text })
    this.#open.closePart(status)
  }
}

const TEXTS: ReadonlyArray<[member: string, types: readonly string[]]> = [
  ['summary', ['summary_text']],
  ['content', ['reasoning_text', 'text']],
]
/** What providers told us apart from the item, and what only we may say. */
const INTERNAL_MEMBERS = new Set(['signature', 'redacted', 'origin'])
/**
 * Clients send back all items of a response whose reasoning they never saw sealed (@openai/agents and LangChain, unless
 * told otherwise): the provider of the official API knows it by its id.
 */
const ID = /^rs_[0-9A-Za-z]{22}$/

function givenReasoning(item: ItemScan): GivenForm {
  const dropped = new Set(INTERNAL_MEMBERS)
  const added: string[] = []
  for (const [name, types] of TEXTS) {
    const kind = item.kindOf(name)
    if (kind !== null && kind !== 'null' && kind !== 'array') item.fail(name, 'must be an array of parts')
    for (const [index, part] of item.parts(name).entries()) {
      const at = `${name}[${index}]`
      const type = partType(item, part, at)
      if (!types.includes(type)) item.fail(`${at}.type`, `${quoted(type)} is no part of it`)
      needString(item, part, at, 'text')
    }
    if (kind === 'null') dropped.add(name)
  }
  if (item.kindOf('summary') !== 'array') added.push('"summary":[]')
  const sealed = item.kindOf('encrypted_content')
  if (sealed !== null && sealed !== 'null' && sealed !== 'string') {
    item.fail('encrypted_content', 'must be a string')
  }
  const id = item.textOf(item.members.get('id'))
  const form: GivenForm = { dropped, added }
  return sealed !== 'string' && id !== null && ID.test(id) ? { ...form, repeats: id } : form
}

/** One item for each block that was sealed; none where the seal does not open. */
function openedBlocks({ bytes }: { bytes: Uint8Array }, open: Parameters<Opened>[1]): ModelItems {
  const sealed = sealedText(bytes)
  const secret = sealed === null ? null : open(sealed)
  const items = (secret ?? []).map(({ text, ...proof }) =>
    encoder.encode(
      JSON.stringify({ type: 'reasoning', content: [{ type: 'reasoning_text', text }], ...proof }),
    ),
  )
  return { items, results: [] }
}

type Opened = Extract<ModelForm, (...args: never[]) => unknown>

function sealedText(bytes: Uint8Array): string | null {
  let text: string | null = null
  scanJson(bytes, {
    value(path, kind, start, end) {
      if (path.length !== 1 || path[0] !== 'encrypted_content') return
      text = kind === 'string' ? decodeString(bytes, start + 1, end - 1) : null
    },
  })
  return text
}

const encoder = new TextEncoder()
