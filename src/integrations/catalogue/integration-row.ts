import type { AuthorizationMethod, Integration } from '../types.ts'

/** The columns of an integration that calls need, as Postgres has them. */
interface IntegrationColumns extends Omit<Integration, 'authorization' | 'isDisabled'> {
  authorization: Record<string, unknown>
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
