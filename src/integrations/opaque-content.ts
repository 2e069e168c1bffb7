import type { OpaqueContent, ToolAnswer } from '../calls/call-tool.ts'

/** Content blocks whose members are texts (MCP, ContentBlock). */
const TEXT_TYPES = ['text', 'resource_link']

const LONGEST_KIND = 40

/**
 * The content of a result that no policy can read: images, audio, binary resources, and blocks of an unknown type.
 * @param members of a result of a tool (MCP, CallToolResult), unchecked.
 */
export function opaqueContent({ content }: ToolAnswer['members']): OpaqueContent[] {
  if (!Array.isArray(content)) return []
  return content.flatMap((block: unknown, index): OpaqueContent[] => {
    const { type, resource } = (block ?? {}) as { type?: unknown; resource?: { blob?: unknown } | null }
    if (TEXT_TYPES.includes(String(type))) return []
    if (type === 'image' || type === 'audio') return [{ kind: type, path: ['content', index, 'data'] }]
    if (type !== 'resource') return [{ kind: kindOf(type), path: null }]
    return resource?.blob === undefined
      ? []
      : [{ kind: 'blob', path: ['content', index, 'resource', 'blob'] }]
  })
}

/** The name of a type that the upstream made up is not shown as it is. */
const kindOf = (type: unknown): string =>
  typeof type === 'string' && /^[a-z][a-z0-9_]*$/.test(type) && type.length <= LONGEST_KIND ? type : 'unknown'
