import { sha256Hex } from '../../lib/crypto.ts'

/** OpenAI's limit for names of functions; clients of MCP pass names of tools on to models. */
const LONGEST_NAME = 64

/** Hex digits that keep a changed name apart from others. */
const DIGEST_LENGTH = 6

/** Prefix of the names of this service's own tools (interface: MCP gateway). No integration has it. */
export const PLATFORM = 'platform'

/**
 * The name under which callers call a tool: `{integration}_{tool}` (interface: MCP gateway). A name that is too long, or has
 * characters that models' APIs refuse, is cut and ends with a digest of the whole, so that it depends on nothing else:
 * a list and a later call agree.
 * @param tool the tool's name, as the upstream has it.
 */
export function toolName(slug: string, tool: string): string {
  const whole = `${slug}_${tool}`
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain === whole && whole.length <= LONGEST_NAME) return whole
  const suffix = `_${sha256Hex(whole).slice(0, DIGEST_LENGTH)}`
  return plain.slice(0, LONGEST_NAME - suffix.length) + suffix
}
