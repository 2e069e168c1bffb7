import type { JsonPath } from '../../lib/json-visitor.ts'

/**
 * A string that a protocol defines, as opposed to text of a person or model:
 * - `word` is one of a few values, such as a type; a value of another form is text.
 * - `fixed` has to arrive byte for byte, such as the id of a call, or a signature. A change would break the request, so
 *   a finding in it can block the call or be recorded.
 * - `ours` comes from the gateway itself: the model of the catalogue, and proofs that it has unsealed.
 */
export type TechnicalKind = 'word' | 'fixed' | 'ours'

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
const CONTENT = contentObject()

/** Parts and blocks, which may hold others in `content` and in their source. */
function contentObject(): KnownObject {
  const members = new Map(Object.entries(CONTENT_MEMBERS))
  const { technical } = known({
    type: 'word',
    detail: 'word',
    id: 'fixed',
    tool_use_id: 'fixed',
    signature: 'fixed',
    encrypted_content: 'fixed',
  })
  const content = { technical, members }
  members.set('content', content)
  members.set('source', known({ type: 'word', media_type: 'word' }, { content }))
  return content
}

/** Parts of items name files by their id. */
const STORED_CONTENT = known({ type: 'word', detail: 'word', id: 'fixed', file_id: 'fixed' })
const REASONING = known({ type: 'word', format: 'word', id: 'fixed', signature: 'fixed' })
const MESSAGE = known(
  { role: 'word', id: 'fixed', tool_call_id: 'fixed' },
  {
    content: CONTENT,
    tool_calls: known({ id: 'fixed', type: 'word' }),
    audio: known({ id: 'fixed' }),
    images: CONTENT,
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
  prediction: known({ type: 'word' }, { content: CONTENT }),
  audio: known({ format: 'word' }),
  web_search_options: known({}, { user_location: TYPED }),
  mcp_servers: TYPED,
  container: known({}, { skills: TYPED }),
  context_management: known({}, { edits: TRIGGERED }),
}
const TOP: Record<string, TechnicalKind> = { model: 'ours', service_tier: 'word' }

/** Requests with `messages`, of either protocol, and legacy completions. */
export const MESSAGES_STRUCTURE = known(TOP, { ...settings, system: CONTENT, messages: MESSAGE })

/**
 * Items of responses as callers send, read and store them. Sealed content in them is not exempt here: only the surface
 * knows which of it is its own.
 */
export const ITEM_STRUCTURE = known(
  { type: 'word', role: 'word', status: 'word', server_label: 'word', id: 'fixed', call_id: 'fixed' },
  {
    content: STORED_CONTENT,
    output: STORED_CONTENT,
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
      id: 'fixed',
      call_id: 'fixed',
      signature: 'ours',
      redacted: 'ours',
      origin: 'ours',
    },
    { content: CONTENT, output: CONTENT, summary: TYPED },
  ),
})

/** All technical names: most strings have none of them, so that one look-up decides. */
const NAMES = new Set([
  ...['model', 'service_tier', 'type', 'role', 'ttl', 'detail', 'format', 'media_type', 'id', 'call_id'],
  ...['status', 'server_label', 'file_id'],
  ...['tool_call_id', 'tool_use_id', 'signature', 'encrypted_content', 'redacted', 'origin'],
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
/** By byte: 1 for lower-case letters and punctuation of words, 2 for digits. */
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
