import { type SealOpener, sealedText } from '../sealed-content.ts'
import { type InputItemForm, needString, partType, quoted, withStatus } from './input-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType, ModelItems } from './item-type.ts'

/** A model's reasoning: its readable text as a summary, and all of it sealed, with the signatures of its origin. */
export const reasoning: ItemType = {
  prefix: 'rs',
  read: (item) => withStatus(item, readReasoning(item)),
  direction: () => 'response',
  toModel: openedBlocks,
  precedes: true,
  includable: [{ path: ['encrypted_content'], include: 'reasoning.encrypted_content' }],
  sealedMember: 'encrypted_content',
  events: {
    finalMembers: ['encrypted_content'],
    list: {
      member: 'summary',
      index: 'summary_index',
      added: 'response.reasoning_summary_part.added',
      done: 'response.reasoning_summary_part.done',
      // The official types have a status there for parts that were cut off only.
      cutStatus: true,
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

const TEXTS: ReadonlyArray<[member: string, types: readonly string[]]> = [
  ['summary', ['summary_text']],
  ['content', ['reasoning_text', 'text']],
]
/** Members that the gateway adds in model requests. Callers must not set them. */
const INTERNAL_MEMBERS = new Set(['signature', 'redacted', 'origin'])
/**
 * Clients send back all items of a response, also reasoning that they got without its sealed content (@openai/agents and
 * LangChain by default). The official API finds the stored item by this id.
 */
const ID = /^rs_[0-9A-Za-z]{22}$/

function readReasoning(item: ItemScan): InputItemForm {
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
  const form: InputItemForm = { dropped, added }
  return sealed !== 'string' && id !== null && ID.test(id) ? { ...form, repeats: id } : form
}

/** One item for each sealed block; none if the seal cannot be opened. */
function openedBlocks({ bytes }: { bytes: Uint8Array }, { reasoning: open }: SealOpener): ModelItems {
  const sealed = sealedText(bytes)
  const secret = sealed === null ? null : open(sealed)
  const items = (secret ?? []).map(({ text, ...proof }) =>
    encoder.encode(
      JSON.stringify({ type: 'reasoning', content: [{ type: 'reasoning_text', text }], ...proof }),
    ),
  )
  return { items, results: [] }
}

const encoder = new TextEncoder()
