import { textOf } from '../../gateway/translation/json.ts'
import type { ItemStatus, OutputTextPart, UrlCitation } from '../../wire/responses.ts'
import type { OpenItem } from '../emitter/open-item.ts'
import {
  asTextPart,
  type InputItemForm,
  inputPart,
  needString,
  partType,
  quoted,
  withStatus,
} from './input-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType } from './item-type.ts'

/** A message of a user, an assistant, the system or a developer. */
export const message: ItemType = {
  prefix: 'msg',
  read: (item) => withStatus(item, readMessage(item)),
  direction: (_member, role) => (role === 'assistant' ? 'response' : 'request'),
  toModel: 'itself',
  events: {
    list: {
      member: 'content',
      index: 'content_index',
      added: 'response.content_part.added',
      done: 'response.content_part.done',
      annotations: {
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

/** A message of the model while it is generated. */
export class OpenMessage {
  readonly #open: OpenItem

  constructor(open: OpenItem) {
    this.#open = open
  }

  /** Appends to the open part of this type. Another type begins another part. */
  appendText(type: 'output_text' | 'refusal', text: string): void {
    if (this.#open.part?.type !== type) {
      this.#open.closePart('completed')
      this.#open.openPart(type)
    }
    this.#open.appendToPart(text)
  }

  /**
   * Annotates the last `length` UTF-16 units of the open part with their source. Sources without a URL are left out: they
   * are files at the vendor, which this surface cannot reference.
   */
  addCitation(citation: Record<string, unknown>, length: number): void {
    const { part } = this.#open
    if (part?.type !== 'output_text' || typeof citation.url !== 'string') return
    const { text } = part as unknown as OutputTextPart
    this.#open.annotate(urlCitation(citation, text, Math.max(0, text.length - length)))
  }

  close(status: ItemStatus): void {
    this.#open.close(status)
  }
}

const ROLES = ['user', 'assistant', 'system', 'developer']

function readMessage(item: ItemScan): InputItemForm {
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
    const edited = inputPart(item, part, at, textType)
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
