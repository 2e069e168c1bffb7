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
