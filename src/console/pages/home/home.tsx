import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { call } from '../../data/client.ts'
import { type Me, may, useSignedIn } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Page } from '../../design/page.tsx'
import { Columns } from '../../design/section.tsx'
import { Attention } from './attention.tsx'
import { DayFigures } from './day-figures.tsx'
import styles from './home.module.css'
import { LatestErrors } from './latest-errors.tsx'
import { RecentRuns } from './recent-runs.tsx'
import { SpendByUser } from './spend-by-user.tsx'
import { TEXT } from './text.ts'

/** What needs the user, and how the day goes. */
export function HomePage() {
  const me = useSignedIn()
  return (
    <Page title={TEXT.title}>
      <Attention me={me} />
      {may(me, 'calls.read') && <Day me={me} />}
    </Page>
  )
}

function Day({ me }: { me: Me }) {
  const organizationId = me.organization.id
  const overview = useQuery({
    queryKey: ['overview', organizationId],
    queryFn: () => call('overview.show', { path: { organizationId } }),
    refetchInterval: 10_000,
  })
  const { data, error } = overview
  const failure = error && (
    <Failure error={error} retry={() => overview.refetch()} shownSince={overview.dataUpdatedAt} />
  )
  if (!data) return failure ?? <Waiting />
  const isEmpty = data.hours.every(
    ({ ok, failed, refused, blocked }) => ok + failed + refused + blocked === 0,
  )
  return (
    <>
      {failure}
      {isEmpty && <FirstCall me={me} />}
      <DayFigures me={me} overview={data} />
      <Columns>
        <LatestErrors me={me} errors={data.latest_errors} />
        <SpendByUser me={me} overview={data} />
      </Columns>
      {data.runs && <RecentRuns me={me} runs={data.runs} at={data.at} />}
    </>
  )
}

/** What a user does who has not called anything of late. */
function FirstCall({ me }: { me: Me }) {
  const params = { slug: me.organization.slug }
  return (
    <div className={styles.first}>
      <Notice
        title={TEXT.first}
        acts={
          <>
            <Link to="/$slug/settings/api" params={params} search={{ make: true }}>
              <Button look="main" tabIndex={-1}>
                {TEXT.newKey}
              </Button>
            </Link>
            <Link to="/$slug/playground" params={params}>
              <Button tabIndex={-1}>{TEXT.playground}</Button>
            </Link>
          </>
        }
      >
        <p>{TEXT.firstHint}</p>
      </Notice>
    </div>
  )
}
