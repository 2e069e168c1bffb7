import type { JsonPath } from '../../lib/json-visitor.ts'

/**
 * A string that a protocol defines, as opposed to text of a person or model. Every other string is inspected, under any
 * name; these tables have all that are not, or not changed:
 * - `word` is one of a few values, such as a type; a value of another form is text.
 * - `fixed` has to arrive byte for byte, such as the id of a call, or a signature. A change would break the request, so
 *   a finding in it can block the call or be recorded. A value that has not the form of an identifier is text.
 * - `ours` comes from the gateway itself: the model of the catalogue, ids of items, and proofs that it has unsealed.
 */
type TechnicalKind = 'word' | 'fixed' | 'ours'

/** The technical members of an object, and its members that are known objects or lists of them. */
export interface KnownObject {
  technical: ReadonlyMap<string, TechnicalKind>
  members: ReadonlyMap<string, KnownObject>
}

const known = (
  technical: Record<string, TechnicalKind> = {},
  members: Record<string, KnownObject> = {},
): KnownObject => ({
  technical: new Map(Object.entries(technical)),
  members: new Map(Object.entries(members)),
})

const TYPED = known({ type: 'word' })
const CACHE_CONTROL = known({ type: 'word', ttl: 'word' })
const DETAILED = known({ detail: 'word', format: 'word' })
const FORMAT = known({ type: 'word' })

/** Members of parts and blocks, without the parts and blocks within them. */
const CONTENT_MEMBERS: Record<string, KnownObject> = {
  cache_control: CACHE_CONTROL,
  caller: TYPED,
  citations: TYPED,
  image_url: DETAILED,
  video_url: DETAILED,
  input_audio: DETAILED,
  file: DETAILED,
}
/** Parts of chat completions have no ids: what stands in such a member is the caller's own. */
const CHAT_CONTENT = contentObject({ signature: 'fixed' })
/** Blocks of calls and results have ids, and searches content that only their provider reads. */
const BLOCKS = contentObject({
  id: 'fixed',
  tool_use_id: 'fixed',
  signature: 'fixed',
  encrypted_content: 'fixed',
})

/** Parts and blocks, which may hold others in `content` and in their source. */
function contentObject(ids: Record<string, TechnicalKind>): KnownObject {
  const members = new Map(Object.entries(CONTENT_MEMBERS))
  const { technical } = known({ type: 'word', detail: 'word', ...ids })
  const content = { technical, members }
  members.set('content', content)
  members.set('source', known({ type: 'word', media_type: 'word' }, { content }))
  return content
}

/** Parts of items have no ids. */
const PARTS = known({ type: 'word', detail: 'word' }, CONTENT_MEMBERS)
const REASONING = known({ type: 'word', format: 'word', id: 'fixed', signature: 'fixed' })
const CHAT_MESSAGE = known(
  { role: 'word', tool_call_id: 'fixed' },
  {
    content: CHAT_CONTENT,
    tool_calls: known(
      { id: 'fixed', type: 'word' },
      { extra_content: known({}, { google: known({ thought_signature: 'fixed' }) }) },
    ),
    audio: known({ id: 'fixed' }),
    images: CHAT_CONTENT,
    annotations: TYPED,
    cache_control: CACHE_CONTROL,
    reasoning_details: REASONING,
    thinking_blocks: REASONING,
  },
)

const toolMembers = {
  cache_control: CACHE_CONTROL,
  format: FORMAT,
  custom: known({}, { format: FORMAT }),
  user_location: TYPED,
}
const TOOL = known({ type: 'word' }, toolMembers)
const TOOL_CHOICE = known({ type: 'word' }, { tools: TYPED, allowed_tools: known({}, { tools: TYPED }) })
const TRIGGERED = known({ type: 'word' }, { trigger: TYPED, keep: TYPED, clear_at_least: TYPED })

const settings = {
  tools: TOOL,
  tool_choice: TOOL_CHOICE,
  response_format: TYPED,
  output_format: FORMAT,
  output_config: known({}, { format: FORMAT }),
  text: known({}, { format: FORMAT }),
  thinking: TYPED,
  prediction: known({ type: 'word' }, { content: CHAT_CONTENT }),
  audio: known({ format: 'word' }),
  web_search_options: known({}, { user_location: TYPED }),
  mcp_servers: TYPED,
  container: known({}, { skills: TYPED }),
  context_management: known({}, { edits: TRIGGERED }),
}
const TOP: Record<string, TechnicalKind> = { model: 'ours', service_tier: 'word' }

/** Requests of chat completions, and legacy completions. */
export const CHAT_STRUCTURE = known(TOP, { ...settings, messages: CHAT_MESSAGE })

/** Requests of the messages protocol. */
export const MESSAGES_STRUCTURE = known(TOP, {
  ...settings,
  system: PARTS,
  messages: known({ role: 'word' }, { content: BLOCKS }),
})

/**
 * Items of responses as callers send, read and store them. The gateway creates their ids. Sealed content in them is not exempt
 * here: only the surface knows which of it is its own.
 */
export const ITEM_STRUCTURE = known(
  {
    ...{ type: 'word', role: 'word', status: 'word', server_label: 'word' },
    ...{ id: 'ours', call_id: 'fixed', approval_request_id: 'fixed' },
  },
  {
    content: PARTS,
    output: PARTS,
    summary: TYPED,
    action: known({ type: 'word' }, { sources: TYPED }),
  },
)

/** Turns of responses: their `input` is a list of items. Proofs of thinking in them come from our own seal. */
export const ITEMS_STRUCTURE = known(TOP, {
  ...settings,
  input: known(
    {
      type: 'word',
      role: 'word',
      id: 'ours',
      call_id: 'fixed',
      signature: 'ours',
      redacted: 'ours',
      origin: 'ours',
    },
    { content: PARTS, output: PARTS, summary: TYPED },
  ),
})

/** All technical names: most strings have none of them, so that one look-up decides. */
const NAMES = new Set([
  'model',
  'service_tier',
  'type',
  'role',
  'ttl',
  'detail',
  'format',
  'media_type',
  'id',
  'call_id',
  'status',
  'server_label',
  'approval_request_id',
  'tool_call_id',
  'tool_use_id',
  'signature',
  'thought_signature',
  'encrypted_content',
  'redacted',
  'origin',
])

/**
 * The kind of the technical string at a path. Everything within a member that the protocol does not define is the
 * caller's own, under any name.
 * @param name the last member name on the path. @returns null for text.
 */
export function technicalKind(root: KnownObject, path: JsonPath, name: string): TechnicalKind | null {
  // A list under a technical name is not the member that the protocol defines.
  if (!NAMES.has(name) || path[path.length - 1] !== name) return null
  let object = root
  for (let index = 0; index < path.length - 1; index++) {
    const part = path[index]
    if (typeof part !== 'string') continue
    const member = object.members.get(part)
    if (!member) return null
    object = member
  }
  return object.technical.get(name) ?? null
}

const LONGEST_WORD_BYTES = 80
/** Dates are part of words (`web_search_20250305`); longer runs of digits are numbers. */
const MOST_DIGITS = 8
/** Indexed by byte: 1 for lower-case letters and punctuation of words, 2 for digits. */
const WORD = Uint8Array.from({ length: 128 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  return /\d/.test(character) ? 2 : Number(/[a-z_./+-]/.test(character))
})

/** Whether a string has the form of a type, role or format. */
export function isWord(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > LONGEST_WORD_BYTES) return false
  let digits = 0
  for (let at = start; at < end; at++) {
    const kind = WORD[bytes[at] as number]
    if (!kind) return false
    digits = kind === 2 ? digits + 1 : 0
    if (digits > MOST_DIGITS) return false
  }
  return true
}

/** Indexed by byte: 1 for the characters of ids and base64. No blank, quote or `@`, and no escape but that of a slash. */
const IDENTIFIER = Uint8Array.from({ length: 128 }, (_, byte) =>
  Number(/[A-Za-z0-9_.:|=+/~#$%&*!-]/.test(String.fromCharCode(byte))),
)
const BACKSLASH = 0x5c
const SLASH = 0x2f

/** Whether a string has the form of an id, or of encoded data such as a signature. */
export function isIdentifier(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (!IDENTIFIER[byte] && !(byte === BACKSLASH && bytes[at + 1] === SLASH)) return false
  }
  return true
}
