import { joinBytes } from '../../lib/byte-edits.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'
import type { RequestOutline, TopMember } from '../protocols/request-outline.ts'

/** What identifies the conversation of a call. */
export interface ConversationCall {
  organizationId: string
  modelId: string
  /** The caller's headers. */
  headers: Headers
  outline: Pick<RequestOutline, 'body' | 'members'>
}

/** Headers in which clients name a session: the neutral one, and those of single clients. */
export const SESSION_HEADERS: readonly string[] = [
  'x-claude-code-session-id',
  'x-codeclient-session-id',
  'x-session-id',
]
/** Members that hold the beginning of a conversation, in all protocols. */
const BEGINNING = ['tools', 'system', 'instructions', 'messages', 'input', 'prompt']
/** Lists that are read up to the first message of the user. */
const CONVERSATIONS = new Set(['messages', 'input'])
const LONGEST_NAME_BYTES = 4 * 1024
/** How much of each part of a prompt is read: enough to tell conversations apart. */
const READ_BYTES = 256 * 1024
const SEPARATOR = Uint8Array.of(0)
const decoder = new TextDecoder()

/**
 * A digest that stays the same from turn to turn of one conversation. It is made of the caller's name for it
 * (`prompt_cache_key`, `metadata.user_id`, a session header), else of its beginning: tools, system prompt and first
 * message of the user.
 * @returns null for a request that has neither.
 */
export function conversationKey(call: ConversationCall): string | null {
  const name = givenName(call) ?? beginningOf(call.outline)
  return name && sha256Hex(JSON.stringify([call.organizationId, call.modelId, ...name]))
}

function givenName({ headers, outline }: ConversationCall): [kind: string, value: string] | null {
  const cacheKey = shortValue(outline, 'prompt_cache_key')
  if (typeof cacheKey === 'string' && cacheKey !== '') return ['prompt_cache_key', cacheKey]
  const metadata = shortValue(outline, 'metadata') as { user_id?: unknown } | null | undefined
  if (typeof metadata?.user_id === 'string' && metadata.user_id !== '') return ['user_id', metadata.user_id]
  const session = SESSION_HEADERS.map((header) => headers.get(header)).find((value) => value)
  return session ? ['session', session] : null
}

/** The outline has checked that the body is JSON. */
function shortValue({ body, members }: ConversationCall['outline'], name: string): unknown {
  const member = members.find((each) => each.name === name)
  if (!member || member.end - member.start > LONGEST_NAME_BYTES) return undefined
  return JSON.parse(decoder.decode(body.subarray(member.start, member.end)))
}

function beginningOf({ body, members }: ConversationCall['outline']): [kind: string, value: string] | null {
  const parts: Uint8Array[] = []
  for (const name of BEGINNING) {
    const member = members.find((each) => each.name === name)
    if (member) parts.push(...textsOf(body, member), SEPARATOR)
  }
  return parts.length > 0 ? ['beginning', sha256Hex(joinBytes(parts))] : null
}

/** Ends the scan: the first message of the user has been read. */
class Enough extends Error {}

/**
 * The strings of a member; of `messages` and `input`, up to the first message of the user. Left out is what changes from
 * turn to turn: cache markers, which clients move; types of blocks, because a text becomes a block when it gets a marker;
 * ids and status of items.
 */
function textsOf(body: Uint8Array, member: TopMember): Uint8Array[] {
  const bytes = body.subarray(member.start, Math.min(member.end, member.start + READ_BYTES))
  const texts: Uint8Array[] = []
  let readTo = 0
  let fromUser = false
  try {
    scanJson(bytes, {
      string(path, start, end) {
        readTo = end
        const isRole = path.length === 2 && path[1] === 'role'
        if (isRole && decodeString(bytes, start, end) === 'user') fromUser = true
        if (!isMarker(path) && !isVolatile(member, path)) texts.push(bytes.subarray(start, end), SEPARATOR)
      },
      value(path) {
        if (CONVERSATIONS.has(member.name) && path.length === 1 && fromUser) throw new Enough()
      },
    })
  } catch (error) {
    // Otherwise READ_BYTES end in the middle of a long text: its beginning counts as well.
    if (!(error instanceof Enough)) texts.push(bytes.subarray(readTo))
  }
  return texts
}

/** Members of an item that clients may write anew in each request. */
const VOLATILE = new Set(['id', 'status'])

const isVolatile = ({ name }: TopMember, path: JsonPath): boolean =>
  name === 'input' && path.length === 2 && VOLATILE.has(String(path[1]))

const isMarker = (path: JsonPath): boolean =>
  path[path.length - 1] === 'type' || path.includes('cache_control')
