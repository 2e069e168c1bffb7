import type { BodyMembers } from '../../protocols/body-members.ts'
import { BETA_HEADERS } from '../forwarded-headers.ts'

// What Claude takes on platforms of other vendors, which refuse every member and beta that they do not know.

/** Members of a messages request that every platform takes. */
const TAKEN = [
  'context_management',
  'max_tokens',
  'messages',
  'output_config',
  'stop_sequences',
  'system',
  'temperature',
  'thinking',
  'tool_choice',
  'tools',
  'top_k',
  'top_p',
]

const TAKEN_WHOLE: ReadonlySet<string> = new Set(TAKEN)
const TAKEN_WITH_STREAM: ReadonlySet<string> = new Set([...TAKEN, 'stream'])
const MODEL: ReadonlySet<string> = new Set(['model'])
const MODEL_AND_STREAM: ReadonlySet<string> = new Set(['model', 'stream'])

/**
 * State, tools, a place of processing, and the older name of `output_config.format`, which these platforms do not have: the
 * answer would be another one.
 */
const REFUSED = new Set(['container', 'mcp_servers', 'inference_geo', 'output_format'])

interface Platform {
  /** The version of the protocol, which these platforms want in the body. */
  version: string
  /** Whether `stream` is a member of its requests. */
  takesStream: boolean
  /** Whether the platform has `output_config.format`. */
  hasOutputFormat: boolean
  /** Betas as a member of the body; null where they are a header. */
  betas: readonly string[] | null
  /** Names of what else is left out. */
  alsoDropped: readonly string[]
}

/** The members of a messages request on a platform that has the model in its path. */
export function hostedMembers({
  version,
  takesStream,
  hasOutputFormat,
  betas,
  alsoDropped,
}: Platform): BodyMembers {
  return {
    taken: takesStream ? TAKEN_WITH_STREAM : TAKEN_WHOLE,
    moved: takesStream ? MODEL : MODEL_AND_STREAM,
    refused: REFUSED,
    ...(!hasOutputFormat && { refusedInside: { output_config: 'format' } }),
    added: { anthropic_version: version, ...(betas && betas.length > 0 && { anthropic_beta: betas }) },
    alsoDropped,
  }
}

/** The betas of a request that a platform knows, and the names of headers that had others. */
export function knownBetas(
  headers: Headers | null,
  known: ReadonlySet<string>,
): { betas: string[]; dropped: string[] } {
  const name = BETA_HEADERS.find((each) => headers?.get(each))
  if (!headers || name === undefined) return { betas: [], dropped: [] }
  const sent = (headers.get(name) ?? '').split(',').map((beta) => beta.trim())
  const given = [...new Set(sent.filter((beta) => beta !== ''))]
  const betas = given.filter((beta) => known.has(beta))
  return { betas, dropped: betas.length < given.length ? [name] : [] }
}

/** Whether a model is Claude, by its id on any platform. */
export const isClaude = (upstreamModel: string): boolean => /(^|[^a-z])claude([^a-z]|$)/i.test(upstreamModel)
