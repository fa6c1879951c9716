"""`axolotl_policy`: one line per role, and the deciding rule of each difference."""

from tests.testing.conftest import RunTests


def test_expectations(run_tests: RunTests) -> None:
    """An expectation names exactly what a principal sees and may call, in tests with and without a loop."""
    result = run_tests(
        """
        from shop_container import Container

        def test_roles(axolotl_policy):
            axolotl_policy.expect(roles=["clerk"], sees={"track_order"}, calls={"track_order"})
            axolotl_policy.expect(roles=["manager"], sees={"track_order", "restock"})
            axolotl_policy.expect(calls=set())

        async def test_other_settings(axolotl_policy):
            open_to_all = axolotl_policy(Container, settings={"authorization": {"default": "allow"}})
            open_to_all.expect(subject="ann", calls=["track_order", "restock"])
            axolotl_policy(Container).expect(sees=["track_order", "restock"])
        """
    )
    result.assert_outcomes(passed=2)


def test_differences(run_tests: RunTests) -> None:
    """A message names each difference with the rule that decides, and misspelled names."""
    result = run_tests(
        """
        def test_wrong(axolotl_policy):
            axolotl_policy.expect(subject="ann", roles=["clerk"], tenant="acme", sees={"restock"}, calls={"restock"})

        def test_misspelled(axolotl_policy):
            axolotl_policy.expect(roles=["clerk"], sees={"track_ordre"})

        def test_nothing(axolotl_policy):
            axolotl_policy.expect(roles=["clerk"])
        """
    )
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: The policy differs for ann with roles clerk and tenant acme:",
            "E*does not see restock: denied by 'default'*",
            "E*sees track_order, which is not expected: allowed by 'clerks read'*",
            "E*may not call restock: denied by 'default'*",
            "E*may call track_order, which is not expected: allowed by 'clerks read'*",
            "E*AssertionError: The policy differs for anyone with roles clerk:",
            "E*there is no tool, prompt or resource 'track_ordre'; did you mean 'track_order'?",
            "E*TypeError: expect() needs sees, calls or both",
        ]
    )


def test_features_of_the_same_name(run_tests: RunTests) -> None:
    """A tool and a prompt with the same name are checked separately."""
    result = run_tests(
        """
        import pytest
        from dependency_injector import containers, providers

        from axolotl_core import prompt, tool

        @tool
        def refund() -> str:
            "Pay back."
            return "paid"

        @prompt(name="refund")
        def ask_for_refund() -> str:
            "Ask for it."
            return "Please"

        class Container(containers.DeclarativeContainer):
            tools = providers.List(providers.Object(refund))
            prompts = providers.List(providers.Object(ask_for_refund))

        RULES = [{"name": "prompts", "effect": "allow", "what": {"kinds": ["prompt"]}}]

        def test_names(axolotl_policy):
            policy = axolotl_policy(Container, settings={"authorization": {"rules": RULES}})
            policy.expect(sees={"prompt:refund"}, calls={"prompt:refund"})
            with pytest.raises(AssertionError, match="may call prompt:refund, which is not expected"):
                policy.expect(calls={"tool:refund"})
            with pytest.raises(AssertionError, match="several features: write 'tool:refund' or 'prompt:refund'"):
                policy.expect(calls={"refund"})
        """
    )
    result.assert_outcomes(passed=1)
