import type { AuthorizationMethod, Integration } from '../types.ts'

/** The columns of an integration that calls need, as Postgres has them. */
interface IntegrationColumns {
  id: string
  organizationId: string
  slug: string
  displayName: string
  description: string
  kind: 'mcp' | 'openapi'
  url: string
  authorization: Record<string, unknown>
  price: number
  disabledTools: string[]
  disabledAt: Date | null
}

export function integrationOf(row: IntegrationColumns): Integration {
  const { disabledAt, authorization, ...columns } = row
  return {
    ...columns,
    authorization: authorization as unknown as AuthorizationMethod,
    isDisabled: disabledAt !== null,
  }
}
