import { Link } from '@tanstack/react-router'
import { clockText, zoneName } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { nameOf, useNames } from '../../data/names.ts'
import { type Call, LOOK_OF, statusText } from '../../data/outcomes.ts'
import { useZone } from '../../data/zone.ts'
import { Section } from '../../design/section.tsx'
import { State } from '../../design/state.tsx'
import { Table } from '../../design/table.tsx'
import styles from './home.module.css'
import { TEXT } from './text.ts'

/** The latest calls that were refused, blocked or failed. */
export function LatestErrors({ me, errors }: { me: Me; errors: readonly Call[] }) {
  const [zone] = useZone()
  const names = useNames(me)
  const { slug } = me.organization
  const { heads } = TEXT
  return (
    <Section
      title={TEXT.errors}
      note={TEXT.lastDay}
      end={
        <Link to="/$slug/calls" params={{ slug }} search={{ q: 'outcome:failed' }}>
          {TEXT.allErrors}
        </Link>
      }
    >
      {errors.length === 0 ? (
        <p className={styles.nothing}>{TEXT.noErrors}</p>
      ) : (
        <Table
          caption={TEXT.errors}
          stack="plain"
          heads={[
            { text: `${heads.time}, ${zoneName(zone)}`, width: 76 },
            { text: heads.status, width: 170 },
            { text: heads.model },
            { text: heads.who, width: 104 },
          ]}
        >
          {errors.map((error) => (
            <tr key={error.id}>
              <td data-place="a1" title={error.at}>
                {clockText(error.at, zone)}
              </td>
              <td data-place="b2">
                <State look={LOOK_OF[error.outcome]}>{statusText(error)}</State>
              </td>
              <td data-place="a2">
                <Link to="/$slug/calls/$callId" params={{ slug, callId: error.id }}>
                  {error.tool ?? error.model ?? error.action}
                </Link>
              </td>
              <td data-place="b3">{nameOf(names, error.user_id)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}
