import { Link } from '@tanstack/react-router'
import { durationText } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { Section } from '../../design/section.tsx'
import { type Look, State } from '../../design/state.tsx'
import { Table } from '../../design/table.tsx'
import type { Overview } from './day-figures.tsx'
import styles from './home.module.css'
import { TEXT } from './text.ts'

type Run = NonNullable<Overview['runs']>[number]

const LOOK_OF: Record<Run['status'], Look> = {
  in_progress: 'live',
  success: 'quiet',
  failure: 'failed',
  cancelled: 'quiet',
}

/** Runs of agents that began within the last hour. @param at when they were read: until then those that go on have lasted. */
export function RecentRuns({ me, runs, at }: { me: Me; runs: readonly Run[]; at: string }) {
  const { runHeads: heads } = TEXT
  return (
    <Section title={TEXT.runs} note={TEXT.lastHour}>
      {runs.length === 0 ? (
        <p className={styles.nothing}>{TEXT.noRuns}</p>
      ) : (
        <Table
          caption={TEXT.runs}
          stack="plain"
          heads={[
            { text: heads.agent },
            { text: heads.status, width: 180 },
            { text: heads.step, width: 120 },
            { text: heads.time, width: 120, isFigure: true },
          ]}
        >
          {runs.map((run) => (
            <tr key={run.id}>
              <td data-place="a2">
                <Link
                  to="/$slug/calls"
                  params={{ slug: me.organization.slug }}
                  search={{ q: `run:${run.id}` }}
                >
                  {run.agent}
                </Link>
              </td>
              <td data-place="b2">
                <State look={LOOK_OF[run.status]}>{TEXT.runStatus[run.status]}</State>
              </td>
              <td>{run.step}</td>
              <td data-place="a3" data-figure="">
                {durationText(Date.parse(run.ended_at ?? at) - Date.parse(run.created_at))}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}
