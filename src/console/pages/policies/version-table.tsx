import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../data/client.ts'
import { timeText, zoneName } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { useNames } from '../../data/names.ts'
import { useZone } from '../../data/zone.ts'
import { Failure } from '../../design/notice.tsx'
import { Section } from '../../design/section.tsx'
import { Table } from '../../design/table.tsx'
import styles from './policies.module.css'
import { contentOf, differences, type Policy } from './policy-draft.ts'
import { Changes } from './policy-editor.tsx'
import { TEXT } from './text.ts'

/** The versions of a policy, newest first; one that is chosen shows what it had that the one in force has not. */
export function VersionTable({
  me,
  policy,
  changes,
}: {
  me: Me
  policy: Policy
  changes: readonly string[]
}) {
  const [zone] = useZone()
  const names = useNames(me)
  const [chosen, choose] = useState<number | null>(null)
  const { versionHeads: heads } = TEXT
  const path = { organizationId: me.organization.id, policyId: policy.id }
  const versions = useQuery({
    queryKey: ['policy-versions', path.organizationId, path.policyId, policy.version],
    queryFn: () => call('policies.versions', { path, query: { limit: 20 } }),
  })
  return (
    <Section title={TEXT.versions} note={zoneName(zone)}>
      {versions.error && <Failure error={versions.error} retry={() => versions.refetch()} />}
      <Table
        caption={TEXT.versions}
        isNarrow
        heads={[
          { text: heads.version, width: 84 },
          { text: heads.change },
          { text: heads.author, width: 110 },
          { text: heads.at, width: 124 },
        ]}
      >
        {changes.length > 0 && (
          <tr data-draft="">
            <td>{TEXT.draft(policy.version + 1)}</td>
            <td title={changes.join(', ')}>{changes.join(', ')}</td>
            <td className={styles.dim}>{TEXT.you}</td>
            <td className={styles.dim}>{TEXT.unsaved}</td>
          </tr>
        )}
        {(versions.data?.data ?? []).map(({ version, author, created_at: at, enabled }) => (
          <tr key={version} aria-selected={version === chosen}>
            <td>
              <button
                type="button"
                className={styles.name}
                aria-expanded={version === chosen}
                onClick={() => choose(version === chosen ? null : version)}
              >
                {version}
              </button>
            </td>
            <td className={styles.dim}>{enabled ? '' : TEXT.off}</td>
            <td className={styles.dim}>{names.get(author) ?? author.slice(0, 12)}</td>
            <td className={styles.dim}>{timeText(at, zone)}</td>
          </tr>
        ))}
      </Table>
      {chosen !== null && <VersionChanges me={me} policy={policy} version={chosen} />}
    </Section>
  )
}

function VersionChanges({ me, policy, version }: { me: Me; policy: Policy; version: number }) {
  const path = { organizationId: me.organization.id, policyId: policy.id, version }
  const shown = useQuery({
    queryKey: ['policy-version', path.organizationId, path.policyId, version],
    queryFn: () => call('policies.version', { path }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (shown.error) return <Failure error={shown.error} retry={() => shown.refetch()} />
  if (!shown.data) return null
  const changes = differences(contentOf(policy), contentOf(shown.data))
  return <Changes title={`${policy.version} → ${version}`} changes={changes} />
}
