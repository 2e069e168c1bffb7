import * as z from 'zod'

/** Rules of an organization for the tools that this service runs (`docs/tools.md`). */

const LONGEST_LIST = 500

const family = z.enum(['shell', 'files', 'web_search', 'browser', 'platform'])

const families = z
  .array(family)
  .min(1, 'must name at least one family of tools')
  .refine((each) => new Set(each).size === each.length, 'must not repeat a family')
  .meta({ uniqueItems: true })

const subjectId = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be an id')

/** `*`, a host name, or `*.` and a domain. */
const host = z
  .string()
  .max(253)
  .toLowerCase()
  .refine(
    (text) => text === '*' || /^(\*\.)?([a-z0-9_-]{1,63}\.)+[a-z0-9-]{2,63}$/.test(text),
    'must be a host name, *. and a domain, or *',
  )
  .meta({ pattern: '^(\\*|(\\*\\.)?([A-Za-z0-9_-]{1,63}\\.)+[A-Za-z0-9-]{2,63})$' })

const hosts = z.array(host).max(LONGEST_LIST)

const egress = z.strictObject({ allow: hosts, deny: hosts.default([]) })

/** The whole document; a member that is left out takes its default. */
export const toolSettings = z.strictObject({
  off: z
    .array(
      z.discriminatedUnion(
        'subject_type',
        [
          z.strictObject({ subject_type: z.literal('organization'), tools: families }),
          z.strictObject({
            subject_type: z.enum(['group', 'user', 'key']),
            subject_id: subjectId,
            tools: families,
          }),
        ],
        'must be organization, group, user or key',
      ),
    )
    .max(LONGEST_LIST)
    .default([]),
  web: egress.default({ allow: ['*'], deny: [] }),
  shell: egress.default({ allow: [], deny: [] }),
  approvals: z
    .array(
      z.strictObject({
        integration: z.string().regex(/^(\*|[a-z0-9-]{1,100})$/, 'must be an integration id or *'),
        calls: z.enum(['effects', 'all']),
      }),
    )
    .max(LONGEST_LIST)
    .default([]),
})
