import type { Members } from '../model/types.ts'
import { itemTypeOnWire } from './type-names.ts'

/** Members of an item or part that Open Responses requires where this service may leave them out, or that it has no null for. */
const MEMBERS: Readonly<Record<string, (holder: Members) => Members>> = {
  reasoning: ({ encrypted_content: sealed, ...item }) =>
    sealed == null ? item : { ...item, encrypted_content: sealed },
  input_image: (part) => ({ ...part, image_url: part.image_url ?? null, detail: part.detail ?? 'auto' }),
  output_text: (part) => ({ ...part, annotations: part.annotations ?? [] }),
}

/** Members with lists of parts. */
const PART_LISTS = ['content', 'output', 'summary']

/** An item as Open Responses describes it. Items of other types have the prefix of this service, and always a status. */
export function openResponsesItem(item: object): Members {
  const { type, ...members } = item as Members
  const parts = PART_LISTS.flatMap((name) => {
    const list = members[name]
    return Array.isArray(list) ? [[name, list.map(partOf)]] : []
  })
  const whole = withMembers(String(type), { ...item, ...Object.fromEntries(parts) })
  return { ...whole, type: itemTypeOnWire(String(type)), status: whole.status ?? 'completed' }
}

const partOf = (part: unknown): unknown =>
  typeof part === 'object' && part !== null
    ? withMembers(String((part as Members).type), part as Members)
    : part

const withMembers = (type: string, holder: Members): Members => MEMBERS[type]?.(holder) ?? holder
