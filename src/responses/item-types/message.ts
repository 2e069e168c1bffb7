import { textOf } from '../../gateway/translation/json.ts'
import type { ItemStatus, MessageItem, OutputTextPart, UrlCitation } from '../../wire/responses.ts'
import type { OpenItem } from '../emitter/open-item.ts'
import {
  asTextPart,
  type GivenForm,
  givenPart,
  needString,
  partType,
  quoted,
  withStatus,
} from './given-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType } from './item-type.ts'

/** What a user, an assistant, the system or a developer says. */
export const message: ItemType = {
  prefix: 'msg',
  read: (item) => withStatus(item, givenMessage(item)),
  direction: (_member, role) => (role === 'assistant' ? 'response' : 'request'),
  toModel: 'itself',
  events: {
    list: {
      member: 'content',
      index: 'content_index',
      added: 'response.content_part.added',
      done: 'response.content_part.done',
      replayed: true,
      notes: {
        member: 'annotations',
        event: 'response.output_text.annotation.added',
        index: 'annotation_index',
        value: 'annotation',
      },
      parts: {
        output_text: {
          member: 'text',
          delta: 'response.output_text.delta',
          done: 'response.output_text.done',
          deltaMembers: { logprobs: [] },
          doneMembers: ({ logprobs }) => ({ logprobs }),
          empty: { text: '', annotations: [], logprobs: [] },
        },
        refusal: {
          member: 'refusal',
          delta: 'response.refusal.delta',
          done: 'response.refusal.done',
          empty: { refusal: '' },
        },
      },
    },
  },
}

/** A message of the model while it is written. */
export class OpenMessage {
  readonly item: MessageItem
  readonly #open: OpenItem

  constructor(open: OpenItem) {
    this.item = open.item as MessageItem
    this.#open = open
  }

  /** Adds text to the part of its kind; another kind than before begins another part. */
  say(type: 'output_text' | 'refusal', text: string): void {
    if (this.#open.part?.type !== type) {
      this.#open.closePart('completed')
      this.#open.openPart(type)
    }
    this.#open.growPart(text)
  }

  /**
   * Notes a source of the last `length` UTF-16 units of the text that is being written. Sources without a URL have no
   * place on this surface: theirs are files of the vendor.
   */
  cite(citation: Record<string, unknown>, length: number): void {
    const { part } = this.#open
    if (part?.type !== 'output_text' || typeof citation.url !== 'string') return
    const { text } = part as unknown as OutputTextPart
    this.#open.note(urlCitation(citation, text, Math.max(0, text.length - length)))
  }

  close(status: ItemStatus): void {
    this.#open.close(status)
  }
}

const ROLES = ['user', 'assistant', 'system', 'developer']

function givenMessage(item: ItemScan): GivenForm {
  const role = item.textOf(item.members.get('role'))
  if (role === null || !ROLES.includes(role)) item.fail('role', `must be one of ${ROLES.join(', ')}`)
  const textType = role === 'assistant' ? 'output_text' : 'input_text'
  const content = item.members.get('content')
  if (content?.kind === 'string') return { role, edits: asTextPart(content, textType) }
  if (content?.kind !== 'array') item.fail('content', 'must be a string or an array of parts')
  const edits = item.parts('content').flatMap((part, index) => {
    const at = `content[${index}]`
    const type = partType(item, part, at)
    if (type === 'refusal' && role === 'assistant') {
      needString(item, part, at, 'refusal')
      return []
    }
    const edited = givenPart(item, part, at, textType)
    return edited ?? item.fail(`${at}.type`, `${quoted(type)} is no part of a message with the role ${role}`)
  })
  return { role, edits }
}

/**
 * The official service counts characters as Python does, in code points, and its examples use the indexes as bounds of
 * a slice (https://platform.openai.com/docs/guides/tools-web-search).
 */
function urlCitation(citation: Record<string, unknown>, text: string, from: number): UrlCitation {
  const start = codePoints(text.slice(0, from))
  return {
    type: 'url_citation',
    start_index: start,
    end_index: start + codePoints(text.slice(from)),
    url: textOf(citation.url),
    title: textOf(citation.title),
  }
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
