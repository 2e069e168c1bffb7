import type { TableCall } from './table.ts'

/** The organization id under which changes to the deployment itself are recorded. */
export const DEPLOYMENT = '00000000-0000-0000-0000-000000000000'

/** The names of all organizations by their ids, and of the deployment itself. */
export async function organizationNames({ gateway }: TableCall): Promise<Map<string, string>> {
  const names = new Map([[DEPLOYMENT, '(deployment)']])
  for await (const { data } of gateway.pages('organizations.list', { query: { limit: 200 } })) {
    for (const { id, slug } of data) names.set(id, slug)
  }
  return names
}
