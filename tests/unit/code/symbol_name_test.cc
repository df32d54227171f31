// What functions of C++ and Rust are called.
#include "code/symbol_name.h"

#include <gtest/gtest.h>

#include <string>

#include "code/rust_names.h"

namespace hangscope {
namespace {

TEST(SymbolNames, AreAsInTheSource) {
  EXPECT_EQ(ReadableName("main"), "main");
  EXPECT_EQ(ReadableName("f"), "f");
  EXPECT_EQ(ReadableName("read@@GLIBC_2.2.5"), "read");
  EXPECT_EQ(ReadableName("_ZN4bank7Account5EnterEi"), "bank::Account::Enter(int)");
  EXPECT_EQ(ReadableName("_ZN12_GLOBAL__N_14PollEv"), "(anonymous namespace)::Poll()");
  EXPECT_EQ(ReadableName("_ZThn16_N4bank7Account5EnterEi"), "bank::Account::Enter(int)");
  EXPECT_EQ(ReadableName("_Znot a name"), "_Znot a name");
  EXPECT_EQ(ReadableName(""), "");
}

TEST(SymbolNames, LeaveOutWhatCompilersAppend) {
  for (const char* name : {"transfer.isra.0", "transfer.part.3.cold", "transfer.constprop.0",
                           "transfer.lto_priv.0.cold", "transfer.llvm.123"}) {
    EXPECT_EQ(ReadableName(name), "transfer") << name;
  }
  EXPECT_EQ(ReadableName("_ZN4bank5EnterEi.part.0"), "bank::Enter(int)");
  EXPECT_EQ(ReadableName("inner.0"), "inner.0") << "a function within another";
  EXPECT_EQ(ReadableName(".cold"), ".cold");
}

TEST(SymbolNames, CallALambdaSo) {
  EXPECT_EQ(ReadableName("_ZZ4mainENKUlvE_clEv"), "main::<lambda>");
  EXPECT_EQ(ReadableName("_ZZ4mainENK3$_0clEv"), "main::<lambda>") << "of clang";
  EXPECT_EQ(ReadableName("_ZZ4mainENKUlT_E_clIiEEDaS_"), "main::<lambda>") << "with a return type";
  EXPECT_EQ(ReadableName("_ZZN4bank3RunEiENKUlvE_clEv"), "bank::Run(int)::<lambda>");
}

TEST(SymbolNames, HaveNoReturnType) {
  EXPECT_EQ(ReadableName("_Z4waitIiEvT_"), "wait<int>(int)");
  EXPECT_EQ(ReadableName("_ZN1AcvbEv"), "A::operator bool()");
  EXPECT_EQ(ReadableName("_ZN1AltERKS_"), "A::operator<(A const&)");
  EXPECT_EQ(ReadableName("_ZNK1A4waitEv"), "A::wait() const");
}

TEST(SymbolNames, OfTemplatesCanBeRead) {
  const std::string name =
      ReadableName("_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEE6_M_runEv");
  EXPECT_EQ(name, "std::thread::_State_impl<std::thread::_Invoker<...> >::_M_run()");
  EXPECT_EQ(ReadableName("_ZSt13__invoke_implIvZ4mainEUlvE_JEET_St14__invoke_otherOT0_DpOT1_"),
            "std::__invoke_impl<...>(std::__invoke_other, main::<lambda>&&)");
}

TEST(SymbolNames, OfRustAreAsRustWritesThem) {
  EXPECT_EQ(ReadableName("_RNCNvCs4fqI2P2rA04_4bank4main0B3_"), "bank::main::{closure#0}");
  EXPECT_EQ(ReadableName("_RNCNvCs4fqI2P2rA04_4bank4mains_0B3_"), "bank::main::{closure#1}");
  EXPECT_EQ(ReadableName("_RNvMs_NtCs4fqI2P2rA04_4bank5depotINtB4_5DepotmE4fill"),
            "bank::depot::Depot<u32>::fill");
  EXPECT_EQ(
      ReadableName("_RNvXCs4fqI2P2rA04_4bankNtB2_5QueueNtNtCs5QKde7ScR4Z_4core3ops4Drop4drop"),
      "<bank::Queue as core::ops::Drop>::drop");
  EXPECT_EQ(ReadableName("_RINvCs4fqI2P2rA04_4bank4waitRSmTlcEAhj3_FUKCmEuDNtB2_4WorkEL_E"),
            "bank::wait::<...>");
  EXPECT_EQ(ReadableName("_RNvCs4fqI2P2rA04_4banku9dchen_gra.llvm.17"), "bank::dächen");
  EXPECT_EQ(ReadableName("_ZN4bank4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"),
            "bank::main::{{closure}}");
  EXPECT_EQ(ReadableName("_ZN53_$LT$bank..Queue$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456"
                         "789abcdefE"),
            "<bank::Queue as core::ops::drop::Drop>::drop");
}

TEST(SymbolNames, OfRustThatAreNoneStayAsTheyAre) {
  EXPECT_EQ(DemangleRust("_ZN4bank4mainEv"), std::nullopt) << "C++";
  EXPECT_EQ(DemangleRust("_ZN4bank4main17hxyz3456789abcdefE"), std::nullopt);
  EXPECT_EQ(DemangleRust("_R"), std::nullopt);
  EXPECT_EQ(DemangleRust("_RN"), std::nullopt);
  EXPECT_EQ(DemangleRust("_RNvB_4bank"), std::nullopt) << "refers to itself";
  EXPECT_EQ(DemangleRust("_RNvC99999999999999999999bank4main"), std::nullopt);
  EXPECT_EQ(DemangleRust("_R" + std::string(100'000, 'N')), std::nullopt);
  // Each of them twice as long as the one before.
  std::string doubled = "_RINvC1a1bTccE";
  for (size_t at = 9; doubled.size() < 400; at += 7) doubled += "TB7_B7_E";
  EXPECT_LE(DemangleRust(doubled + "E").value_or("").size(), 5000u);
}

TEST(SymbolNames, TellRustsLibrariesFromPrograms) {
  for (const char* name :
       {"_ZN3std6thread4park17h0123456789abcdefE", "_RNvNtCs4fqI2P2rA04_3std6thread4park",
        "_RNvMNtCs4fqI2P2rA04_11parking_lot5mutexNtB2_5Mutex9lock_slow",
        "_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE"}) {
    EXPECT_TRUE(IsOfRustLibraries(name)) << name;
  }
  for (const char* name : {"_ZN4bank4main17h0123456789abcdefE",
                           "_RNCNvCs4fqI2P2rA04_4bank4main0B3_", "main", "_ZN4core6Engine3RunEv",
                           "_RNvXCs4fqI2P2rA04_4bankNtB2_5QueueNtCs5QKde7ScR4Z_4core4Drop4drop"}) {
    EXPECT_FALSE(IsOfRustLibraries(name)) << name;
  }
}

}  // namespace
}  // namespace hangscope
