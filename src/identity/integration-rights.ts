/** The integrations that a caller may use. Plain data. */
export interface IntegrationGrants {
  /** A grant on every integration and all its tools. */
  all: boolean
  /** For each slug of an integration: names of tools as the upstream has them, or `*` for every tool. */
  bySlug: Readonly<Record<string, '*' | readonly string[]>>
}

/** A row of `integration_grants`: `integration` is a slug or `*`; `tools` null for every tool. */
export interface GrantedIntegration {
  integration: string
  tools: readonly string[] | null
}

/**
 * The rights that several grants give together. A grant on `*` with tools names these tools in every integration, which no
 * caller needs: it gives nothing.
 */
export function integrationGrantsOf(rows: readonly GrantedIntegration[]): IntegrationGrants {
  const bySlug: Record<string, '*' | readonly string[]> = {}
  for (const { integration, tools } of rows) {
    if (integration === '*') continue
    const known = bySlug[integration] ?? []
    bySlug[integration] = tools === null || known === '*' ? '*' : [...new Set([...known, ...tools])]
  }
  return { all: rows.some(({ integration, tools }) => integration === '*' && tools === null), bySlug }
}

/** Whether a grant covers a tool. @param tool its name, as the upstream has it. */
export function mayUseTool({ all, bySlug }: IntegrationGrants, slug: string, tool: string): boolean {
  const granted = Object.hasOwn(bySlug, slug) ? bySlug[slug] : undefined
  return all || granted === '*' || granted?.includes(tool) === true
}
