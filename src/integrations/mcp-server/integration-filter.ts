/**
 * The integrations to which a list is narrowed (interface: MCP gateway, Integration filter).
 * @param parameters of the query: `integrations`, comma-separated or repeated. It wins over the header.
 * @param header `x-service-integrations`, comma-separated; null without it.
 * @returns slugs; null for a list that is not narrowed. A filter without a slug matches nothing.
 */
export function integrationFilter(parameters: URLSearchParams, header: string | null): string[] | null {
  const values = parameters.getAll('integrations')
  const texts = values.length > 0 ? values : header === null ? null : [header]
  if (texts === null) return null
  const slugs = texts.flatMap((text) => text.split(',')).map((slug) => slug.trim().toLowerCase())
  return [...new Set(slugs.filter((slug) => slug !== ''))]
}
